"""CRC-32C (Castagnoli) from its definition, for the tests that verify recordings: reflected
polynomial 0x82f63b78, start and end XOR 0xffffffff. Written without a look at the C sources."""
import numpy as np

PIECE = 512  # bytes: numpy's calls cost less the longer its arrays are


def _table():
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82f63b78), table >> 1)
    return table.astype(np.uint32)


def _after_zeros(n):
    """[4][256]: what n zero bytes make of each byte of the state. States are linear: that of a XOR
    is the XOR of both."""
    states = np.arange(256, dtype=np.uint32) << np.arange(0, 32, 8, dtype=np.uint32)[:, None]
    for _ in range(n):
        states = TABLE[states & 0xff] ^ (states >> np.uint32(8))
    return states


TABLE = _table()
AFTER_PIECE = _after_zeros(PIECE)


def crc32c_rows(rows):
    """CRC-32C of each row of an array [n][...], of its bytes as they lie in the file: four or more.

    A row is cut in pieces, whose states, from zero, are computed side by side. Zeros before a row
    leave the state zero, and the start XOR is that of the first four bytes."""
    data = np.ascontiguousarray(np.ascontiguousarray(rows).reshape(len(rows), -1)).view(np.uint8)
    n, n_bytes = data.shape
    assert n_bytes >= 4
    n_pieces = -(-n_bytes // PIECE)
    padded = np.zeros((n, n_pieces * PIECE), np.uint8)
    padded[:, -n_bytes:] = data
    padded[:, padded.shape[1] - n_bytes:][:, :4] ^= 0xff
    states = np.zeros((n, n_pieces), np.uint32)
    for column in np.ascontiguousarray(padded.reshape(n, n_pieces, PIECE).transpose(2, 0, 1)):
        states = TABLE[(states ^ column) & 0xff] ^ (states >> np.uint32(8))
    crc = np.zeros(n, np.uint32)
    for piece in states.T:
        for i in range(4):
            piece = piece ^ AFTER_PIECE[i][(crc >> np.uint32(8 * i)) & 0xff]
        crc = piece
    return crc ^ np.uint32(0xffffffff)


assert crc32c_rows(np.frombuffer(b"123456789", np.uint8)[None])[0] == 0xe3069283  # RFC 3720's kin
assert crc32c_rows(np.zeros((1, 32), np.uint8))[0] == 0x8a9136aa


def _by_definition(data):
    """Bit by bit."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


_LONG = np.random.default_rng(1).integers(0, 256, (2, 2 * PIECE + 7)).astype(np.uint8)
assert crc32c_rows(_LONG).tolist() == [_by_definition(row) for row in _LONG.tolist()]
