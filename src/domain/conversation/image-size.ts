/** The size of a picture, by the head of its file: PNG, JPEG, GIF and WebP. Nothing is decoded. */

export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** The longest side that models' providers take, in pixels. One larger picture makes them refuse each later message of a conversation. */
export const IMAGE_SIDE_MAX = 8000;

const textAt = (bytes: Buffer, at: number, length: number): string =>
  bytes.toString("latin1", at, at + length);

const png = (bytes: Buffer): ImageSize | null =>
  bytes.length >= 24 && textAt(bytes, 12, 4) === "IHDR"
    ? { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
    : null;

const gif = (bytes: Buffer): ImageSize | null =>
  bytes.length >= 10 ? { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) } : null;

/** Markers from 0xc0 to 0xcf begin a frame, but for these: tables, a reserved one, and conditions of arithmetic coding. */
const NO_FRAME = new Set([0xc4, 0xc8, 0xcc]);

const jpeg = (bytes: Buffer): ImageSize | null => {
  for (let at = 2; at + 9 <= bytes.length && bytes[at] === 0xff;) {
    const marker = bytes[at + 1] ?? 0;
    if (marker === 0xff) at += 1;
    else if (marker >= 0xc0 && marker <= 0xcf && !NO_FRAME.has(marker))
      return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
    else at += 2 + bytes.readUInt16BE(at + 2);
  }
  return null;
};

const webp = (bytes: Buffer): ImageSize | null => {
  if (bytes.length < 30) return null;
  switch (textAt(bytes, 12, 4)) {
    case "VP8X":
      return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
    case "VP8L": {
      const bits = bytes.readUInt32LE(21);
      return { width: (bits % 16_384) + 1, height: (Math.floor(bits / 16_384) % 16_384) + 1 };
    }
    case "VP8 ":
      return { width: bytes.readUInt16LE(26) % 16_384, height: bytes.readUInt16LE(28) % 16_384 };
    default:
      return null;
  }
};

const READERS: Readonly<Record<string, (bytes: Buffer) => ImageSize | null>> = {
  "image/png": png,
  "image/gif": gif,
  "image/jpeg": jpeg,
  "image/webp": webp,
};

/**
 * Why model providers refuse a picture, after "it" or a colon. Null if they take it.
 *
 * @param bytes the whole file, or its beginning
 */
export const unfitPicture = (mediaType: string, bytes: Uint8Array): string | null => {
  const size = imageSize(mediaType, bytes);
  if (size === null) return "it is not a whole picture of the kinds that models take (PNG, JPEG, GIF, WebP).";
  const { width, height } = size;
  return Math.max(width, height) > IMAGE_SIDE_MAX
    ? `it has ${width} x ${height} pixels, and models take at most ${IMAGE_SIDE_MAX} on a side. Make a smaller copy to look at it.`
    : null;
};

/** @returns null if the file has no size, so it is broken, or if it is no picture of these kinds */
export const imageSize = (mediaType: string, bytes: Uint8Array): ImageSize | null => {
  const size = READERS[mediaType]?.(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)) ?? null;
  return size === null || size.width === 0 || size.height === 0 ? null : size;
};
