// Pictures as octweb sends them (web/view.h), and the panels that show them.

export const PNG = 256, WIDE = 2, COLOUR = 1;
const decoder = new TextDecoder();

export function parse(buffer) {
  const d = new DataView(buffer);
  if (buffer.byteLength < 64 || decoder.decode(new Uint8Array(buffer, 0, 4)) !== "OCTP" ||
      d.getUint16(4, true) !== 1)
    return null;
  const form = d.getUint32(12, true), nJson = d.getUint32(56, true), nImage = d.getUint32(60, true);
  return {
    kind: d.getUint16(6, true), serial: d.getUint32(8, true), form: form & 255,
    isPng: (form & PNG) !== 0, width: d.getUint32(16, true), height: d.getUint32(20, true),
    lines: d.getUint32(24, true), depth: d.getUint32(28, true), lo: d.getFloat64(32, true),
    hi: d.getFloat64(40, true), frame: Number(d.getBigUint64(48, true)),
    ...JSON.parse(decoder.decode(new Uint8Array(buffer, 64, nJson))),
    blob: new Blob([new Uint8Array(buffer, 64 + nJson, nImage)],
                   {type: form & PNG ? "image/png" : "image/jpeg"}),
  };
}

export const css = (rgb, alpha = 255) =>
  `rgb(${rgb >> 16} ${(rgb >> 8) & 255} ${rgb & 255} / ${alpha / 255})`;

// Between places of a palette.
const COLOURS = [[0, 0, 4], [40, 11, 84], [101, 21, 110], [159, 42, 99], [212, 72, 66],
                 [245, 125, 21], [250, 193, 39], [252, 255, 164]];
export const PALETTES = ["grey", "inverted", "colour"];

function colour(palette, share) {
  if (palette !== 2) {
    const g = Math.round(255 * (palette === 1 ? 1 - share : share));
    return [g, g, g];
  }
  const at = share * (COLOURS.length - 1), i = Math.min(Math.floor(at), COLOURS.length - 2);
  return COLOURS[i].map((c, k) => Math.round(c + (at - i) * (COLOURS[i + 1][k] - c)));
}

// What is white and black, of all panels: values, or the published limits.
export class Contrast {
  mode = "published"; lo = 0; hi = 1; gamma = 1; palette = 0;

  limits(picture) {
    const [lo, hi] = picture.grey ?? [picture.lo, picture.hi];
    return this.mode === "published" ? [lo, hi] : [this.lo, this.hi];
  }

  isPlain(picture) {
    return this.mode === "published" && this.gamma === 1 && this.palette === 0 &&
           picture.form !== WIDE;
  }

  // For each level of the picture its colour.
  table(picture) {
    const n = picture.form === WIDE ? 65536 : 256, table = new Uint32Array(n);
    const [lo, hi] = this.limits(picture);
    for (let level = 0; level < n; level++) {
      const value = valueOf(picture, level);
      const share = Math.min(Math.max((value - lo) / (hi - lo), 0), 1) || 0;
      const [r, g, b] = colour(this.palette, share ** this.gamma);
      table[level] = 0xff000000 | b << 16 | g << 8 | r;
    }
    return table;
  }
}

function valueOf(picture, level) {
  if (picture.form !== WIDE)
    return picture.lo + level / 255 * (picture.hi - picture.lo);
  return level === 0 ? NaN : picture.lo + (level - 1) / 65534 * (picture.hi - picture.lo);
}

export class Panel {
  constructor(figure, contrast) {
    this.figure = figure;
    this.contrast = contrast;
    this.canvas = figure.querySelector(".picture");
    this.over = figure.querySelector(".over");
    this.words = figure.querySelector(".words");
    this.raw = document.createElement("canvas");    // as it came
    this.shown = document.createElement("canvas");  // in the contrast
    this.picture = null;
    this.lens = {zoom: 1, x: 0.5, y: 0.5};
    this.drawOver = null;
    new ResizeObserver(() => this.paint()).observe(figure);
  }

  async take(picture) {
    const bitmap = await createImageBitmap(picture.blob, {
      premultiplyAlpha: "none", colorSpaceConversion: "none"});
    picture.bitmap = bitmap;
    return picture;
  }

  show(picture) {
    this.picture = picture;
    this.raw.width = picture.width;
    this.raw.height = picture.height;
    this.raw.getContext("2d", {willReadFrequently: true}).drawImage(picture.bitmap, 0, 0);
    picture.bitmap.close();
    this.recolour();
    this.say();
  }

  forget() {
    this.picture = null;
    this.words.replaceChildren();
    this.paint();
  }

  // Colours what came by the contrast; a tinted picture keeps its colours.
  recolour() {
    const p = this.picture;
    if (!p)
      return;
    this.source = this.raw;
    if (!this.contrast.isPlain(p)) {
      const data = this.raw.getContext("2d", {willReadFrequently: true})
        .getImageData(0, 0, p.width, p.height);
      const pixels = new Uint32Array(data.data.buffer), table = this.contrast.table(p);
      const wide = p.form === WIDE;
      for (let i = 0; i < pixels.length; i++) {
        const at = pixels[i], r = at & 255, g = at >> 8 & 255;
        if (wide)
          pixels[i] = table[r << 8 | g];
        else if (r === g)
          pixels[i] = table[r];
      }
      this.shown.width = p.width;
      this.shown.height = p.height;
      this.shown.getContext("2d").putImageData(data, 0, 0);
      this.source = this.shown;
    }
    this.paint();
  }

  // The whole picture in the panel's own pixels, of which the panel shows a part.
  place() {
    const {zoom, x, y} = this.lens, w = this.canvas.width, h = this.canvas.height;
    let pw = w, ph = h;
    const p = this.picture, um = p?.um;
    if (p && this.fits && um?.[0] > 0 && um?.[1] > 0) {
      const proportion = p.lines * um[0] / (p.depth * um[1]);
      pw = Math.min(w, h * proportion);
      ph = pw / proportion;
    }
    pw *= zoom;
    ph *= zoom;
    const inside = (at, all, room) => all <= room ? (room - all) / 2
      : Math.min(Math.max(room / 2 - at * all, room - all), 0);
    return {x: inside(x, pw, w), y: inside(y, ph, h), w: pw, h: ph};
  }

  // Shares of the picture at a place of the page.
  at(event) {
    const box = this.figure.getBoundingClientRect(), scale = this.canvas.width / box.width;
    const p = this.place();
    return {u: ((event.clientX - box.left) * scale - p.x) / p.w,
            v: ((event.clientY - box.top) * scale - p.y) / p.h};
  }

  zoom(factor, u = this.lens.x, v = this.lens.y) {
    const zoom = Math.min(Math.max(this.lens.zoom * factor, 1), 32), by = this.lens.zoom / zoom;
    this.lens = {zoom, x: u + (this.lens.x - u) * by, y: v + (this.lens.y - v) * by};
    this.pan(0, 0);
  }

  pan(dx, dy) {
    const half = 0.5 / this.lens.zoom, keep = (at) => Math.min(Math.max(at, half), 1 - half);
    this.lens.x = keep(this.lens.x + dx);
    this.lens.y = keep(this.lens.y + dy);
    this.paint();
  }

  // The value at shares of the picture: as it came where it is a PNG, else nearly.
  value(u, v) {
    const p = this.picture;
    if (!p || !(u >= 0 && u < 1 && v >= 0 && v < 1))
      return null;
    const [r, g] = this.raw.getContext("2d", {willReadFrequently: true})
      .getImageData(Math.floor(u * p.width), Math.floor(v * p.height), 1, 1).data;
    return {value: valueOf(p, p.form === WIDE ? r << 8 | g : r), exact: p.isPng,
            line: Math.floor(u * p.lines), depth: Math.floor(v * p.depth)};
  }

  paint() {
    const box = this.figure.getBoundingClientRect(), ratio = Math.min(devicePixelRatio || 1, 2);
    const w = Math.max(1, Math.round(box.width * ratio)), h = Math.max(1, Math.round(box.height * ratio));
    for (const canvas of [this.canvas, this.over])
      if (canvas.width !== w || canvas.height !== h)
        [canvas.width, canvas.height] = [w, h];
    const c = this.canvas.getContext("2d"), o = this.over.getContext("2d");
    c.clearRect(0, 0, w, h);
    o.clearRect(0, 0, w, h);
    if (!this.picture || !this.source)
      return;
    const p = this.place();
    c.imageSmoothingEnabled = p.w / this.picture.width < 6;
    c.drawImage(this.source, p.x, p.y, p.w, p.h);
    this.list(o, p, ratio);
    this.drawOver?.(o, p, ratio);
  }

  // What octd found, as octview draws it.
  list(o, p, ratio) {
    o.save();
    o.beginPath();
    o.rect(p.x, p.y, p.w, p.h);
    o.clip();
    o.lineWidth = 1.6 * ratio;
    for (const [rgb, alpha, fills, at] of this.picture.draw ?? []) {
      o.fillStyle = o.strokeStyle = css(rgb, alpha);
      if (fills) {
        o.fillRect(p.x + at[0] / 1e4 * p.w, p.y + at[1] / 1e4 * p.h,
                   at[2] / 1e4 * p.w + ratio / 2, at[3] / 1e4 * p.h + ratio / 2);
        continue;
      }
      o.beginPath();
      for (let i = 0; i < at.length; i += 2)
        o.lineTo(p.x + at[i] / 1e4 * p.w, p.y + at[i + 1] / 1e4 * p.h);
      o.stroke();
    }
    o.textAlign = "center";
    o.textBaseline = "middle";
    o.font = `${15 * ratio}px system-ui, sans-serif`;
    o.lineWidth = 4 * ratio;
    o.lineJoin = "round";
    o.strokeStyle = "#12161c";
    for (const [x, y, w, h, text, rgb] of this.picture.texts ?? []) {
      const at = [p.x + (x + w / 2) / 1e3 * p.w, p.y + (y + h / 2) / 1e3 * p.h];
      o.fillStyle = css(rgb);
      o.strokeText(text, ...at);
      o.fillText(text, ...at);
    }
    o.restore();
  }

  // Words in the corner, for eyes and for screen readers.
  say() {
    const p = this.picture, lines = [];
    if (p.title)
      lines.push([p.title, null, p.tone ?? 0]);
    if (p.more)
      lines.push([p.more, null, 0]);
    for (const [text, rgb] of p.words ?? [])
      lines.push([text, rgb, 0]);
    const key = JSON.stringify(lines);
    if (key === this.said)
      return;
    this.said = key;
    this.words.replaceChildren(...lines.map(([text, rgb, tone]) => {
      const span = document.createElement("span");
      span.textContent = text;
      span.className = `tone${tone}`;
      if (rgb !== null)
        span.style.color = css(rgb);
      return span;
    }));
  }
}
