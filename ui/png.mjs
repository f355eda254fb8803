// Makes a picture of a page small: of all its colours it keeps 256.
import { crc32, deflateSync, inflateSync } from "node:zlib";

/** pixels are the rows of a picture as Chromium writes it: three bytes a pixel, not interlaced. */
function pixels(png) {
  const width = png.readUInt32BE(16), height = png.readUInt32BE(20), line = 3 * width, data = [];
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at)) {
    if (png.toString("latin1", at + 4, at + 8) === "IDAT") data.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  }
  const raw = inflateSync(Buffer.concat(data)), out = Buffer.alloc(line * height);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (line + 1)];
    for (let x = 0, o = y * line; x < line; x++, o++) {
      const left = x < 3 ? 0 : out[o - 3], up = y ? out[o - line] : 0, corner = x < 3 || !y ? 0 : out[o - line - 3], p = left + up - corner;
      const [dl, du, dc] = [left, up, corner].map((n) => Math.abs(p - n));
      const paeth = dl <= du && dl <= dc ? left : du <= dc ? up : corner;
      out[o] = raw[o + y + 1] + [0, left, up, (left + up) >> 1, paeth][filter];
    }
  }
  return { width, height, out };
}

const far = (a, b) => Math.max(Math.abs((a >> 16) - (b >> 16)), Math.abs(((a >> 8) & 255) - ((b >> 8) & 255)), Math.abs((a & 255) - (b & 255)));

/** palette has at most 256 colours: the 128 most frequent, and others that are not near one of these or each other. */
function palette(counts) {
  const byCount = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a));
  for (let near = 2; ; near += 2) {
    const chosen = [];
    for (const c of byCount) if (chosen.length < 128 || (chosen.length <= 256 && chosen.every((d) => far(c, d) > near))) chosen.push(c);
    if (chosen.length <= 256) return chosen;
  }
}

/** small is a PNG with a palette in place of one with three bytes a pixel. */
export function small(png) {
  const { width, height, out } = pixels(png), counts = new Map();
  const colour = (i) => out.readUIntBE(3 * i, 3);
  for (let i = 0; i < width * height; i++) counts.set(colour(i), (counts.get(colour(i)) ?? 0) + 1);
  const colours = palette(counts), rows = Buffer.alloc((width + 1) * height); // each row begins with 0: no filter
  const nearest = (c) => colours.reduce((best, d, i) => (far(c, d) < far(c, colours[best]) ? i : best), 0);
  const place = new Map([...counts.keys()].map((c) => [c, nearest(c)]));
  for (let i = 0; i < width * height; i++) rows[i + 1 + Math.floor(i / width)] = place.get(colour(i));
  const chunk = (type, data) => {
    const all = Buffer.alloc(12 + data.length);
    all.writeUInt32BE(data.length), all.write(type, 4), data.copy(all, 8);
    all.writeUInt32BE(crc32(all.subarray(4, -4)), all.length - 4);
    return all;
  };
  const head = Buffer.from([...png.subarray(16, 24), 8, 3, 0, 0, 0]); // width, height, 8 bits, palette
  const table = Buffer.from(colours.flatMap((c) => [c >> 16, (c >> 8) & 255, c & 255]));
  return Buffer.concat([png.subarray(0, 8), chunk("IHDR", head), chunk("PLTE", table), chunk("IDAT", deflateSync(rows, { level: 9, memLevel: 9 })), chunk("IEND", Buffer.alloc(0))]);
}
