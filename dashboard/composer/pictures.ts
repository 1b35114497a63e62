/**
 * Pictures that are too large for models, or for the service: a smaller copy goes along, or goes in their place.
 *
 *  F1 The picture itself stays as it is, for people and for the agent's programs. The model sees the copy.
 *  F2 A file that the browser cannot draw is passed on as it is.
 */
import { FILE_MAX } from "./files.ts";

/** Models get a picture as it is up to these limits: in bytes, the same as in the sandbox, and in pixels on the longest side. */
const SEEN_BYTES_MAX = 3.5 * 1024 * 1024;
const SEEN_SIDE_MAX = 8000;
/** The longest side of a copy, in pixels. Models scale larger ones down anyway. */
const COPY_SIDE = 2000;
const COPY_QUALITY = 0.85;

const copyName = (name: string): string => `${name.replace(/\.\w{1,5}$/, "")} (smaller).jpg`;

const drawn = async (bitmap: ImageBitmap): Promise<Blob> => {
  const scale = Math.min(1, COPY_SIDE / Math.max(bitmap.width, bitmap.height));
  const side = (pixels: number): number => Math.max(1, Math.round(pixels * scale));
  const canvas = new OffscreenCanvas(side(bitmap.width), side(bitmap.height));
  const pen = canvas.getContext("2d");
  // JPEG has no transparency. Black would hide dark text.
  if (pen !== null) pen.fillStyle = "white";
  pen?.fillRect(0, 0, canvas.width, canvas.height);
  pen?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return await canvas.convertToBlob({ type: "image/jpeg", quality: COPY_QUALITY });
};

/** The files that go out for one that was chosen. */
const sent = async (file: File): Promise<readonly File[]> => {
  if (!file.type.startsWith("image/") || file.type === "image/svg+xml") return [file];
  const bitmap = await createImageBitmap(file).catch(() => null);
  if (bitmap === null) return [file];
  try {
    const isSeen = file.size <= SEEN_BYTES_MAX && Math.max(bitmap.width, bitmap.height) <= SEEN_SIDE_MAX;
    if (isSeen) return [file];
    const copy = new File([await drawn(bitmap)], copyName(file.name), { type: "image/jpeg" });
    return file.size > FILE_MAX ? [copy] : [file, copy];
  } finally {
    bitmap.close();
  }
};

/** @returns the files in their order, each with its smaller copy if it needs one */
export const withCopies = async (files: Iterable<File>): Promise<readonly File[]> =>
  (await Promise.all([...files].map(sent))).flat();
