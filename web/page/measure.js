// Calipers and the scale bar: each browser's own. Ends are shares of the picture.

const MOST = 9;

export class Calipers {
  constructor(panel, tell) {
    this.panel = panel;
    this.tell = tell;
    this.on = false;
    this.all = [];
    panel.drawOver = (o, place, ratio) => this.draw(o, place, ratio);
  }

  begin(at) {
    if (this.all.length === MOST)
      this.all.shift();
    this.all.push([at, at]);
    this.change();
  }

  move(at) {
    this.all.at(-1)[1] = at;
    this.change();
  }

  // By whole pixels of the picture.
  step(lines, depths) {
    const p = this.panel.picture;
    if (!p)
      return;
    if (!this.all.length)
      this.all.push([{u: 0.4, v: 0.5}, {u: 0.6, v: 0.5}]);
    const end = this.all.at(-1)[1], keep = (at) => Math.min(Math.max(at, 0), 1);
    this.all.at(-1)[1] = {u: keep(end.u + lines / p.lines), v: keep(end.v + depths / p.depth)};
    this.change();
  }

  remove() {
    this.all.pop();
    this.change();
  }

  clear() {
    this.all = [];
    this.change();
  }

  change() {
    this.tell(this.all.map((c, i) => `${this.all.length > 1 ? `${i + 1}: ` : ""}${this.text(c)}`)
      .join("\n"));
    this.panel.paint();
  }

  // In octview's words.
  text([a, b]) {
    const p = this.panel.picture;
    if (!p)
      return "";
    const lines = Math.abs(b.u - a.u) * p.lines, depths = Math.abs(b.v - a.v) * p.depth;
    const [x, y] = p.um ?? [];
    if (!(x > 0 && y > 0))
      return `${lines.toFixed(0)} A-lines, ${depths.toFixed(0)} pixels`;
    const across = lines * x, deep = depths * y;
    return `${Math.hypot(across, deep).toFixed(1)} \u00b5m ` +
           `(across ${across.toFixed(1)}, deep ${deep.toFixed(1)})`;
  }

  draw(o, place, ratio) {
    o.save();
    o.lineWidth = 2 * ratio;
    o.strokeStyle = o.fillStyle = "#5cc8ff";
    o.font = `${14 * ratio}px system-ui, sans-serif`;
    this.all.forEach((c, i) => {
      const [a, b] = c.map(({u, v}) => [place.x + u * place.w, place.y + v * place.h]);
      const turn = Math.atan2(b[1] - a[1], b[0] - a[0]) + Math.PI / 2;
      const dx = 8 * ratio * Math.cos(turn), dy = 8 * ratio * Math.sin(turn);
      o.beginPath();
      o.moveTo(...a);
      o.lineTo(...b);
      for (const [x, y] of [a, b]) {
        o.moveTo(x - dx, y - dy);
        o.lineTo(x + dx, y + dy);
      }
      o.stroke();
      const words = this.all.length > 1 ? `${i + 1}` : this.text(c).split(" (")[0];
      this.label(o, words, b[0] + 8 * ratio, b[1] - 8 * ratio, ratio);
    });
    this.bar(o, place, ratio);
    o.restore();
  }

  // The longest of 1, 2, 5 times a power of ten that takes a quarter of the panel.
  bar(o, place, ratio) {
    const p = this.panel.picture, um = p.um?.[0];
    if (!(um > 0))
      return;
    const most = o.canvas.width / 4 / place.w * p.lines * um;
    const ten = 10 ** Math.floor(Math.log10(most));
    const length = [5, 2, 1].map((n) => n * ten).find((n) => n <= most);
    const px = length / um / p.lines * place.w, x = 10 * ratio, y = o.canvas.height - 12 * ratio;
    o.strokeStyle = "#d8dee6";
    o.fillStyle = "#d8dee6";
    o.beginPath();
    o.moveTo(x, y);
    o.lineTo(x + px, y);
    o.stroke();
    this.label(o, length >= 1000 ? `${length / 1000} mm` : `${length} \u00b5m`, x, y - 6 * ratio,
               ratio);
  }

  // Letters that are readable on any picture.
  label(o, words, x, y, ratio) {
    o.save();
    o.lineWidth = 4 * ratio;
    o.lineJoin = "round";
    o.strokeStyle = "#12161c";
    o.strokeText(words, x, y);
    o.fillText(words, x, y);
    o.restore();
  }
}
