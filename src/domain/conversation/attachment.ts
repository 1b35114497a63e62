/**
 * Files that people attach to messages: their limits, names and kinds.
 *
 *  A1 A name has no path, no control character and no invisible one, so it can be a file's name anywhere.
 *  A2 A file is called an image or a PDF only if its bytes begin like one. A model's provider refuses any other.
 */
import * as Schema from "effect/Schema";

/** The largest attachment, in bytes. */
export const ATTACHMENT_MAX = 10 * 1024 * 1024;
/** How many attachments a message may have. */
export const ATTACHMENTS_MAX = 10;
/** How large the attachments of one message may be together, in bytes. */
export const MESSAGE_ATTACHMENTS_MAX = 25 * 1024 * 1024;
/** The longest name, in bytes of UTF-8: what a file system takes, with room for a suffix. */
export const ATTACHMENT_NAME_MAX = 200;

/** An attachment as a message names it. */
export const AttachmentHead = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  media_type: Schema.String,
  bytes: Schema.Finite,
  /** Hexadecimal. */
  sha256: Schema.String,
});
export type AttachmentHead = typeof AttachmentHead.Type;

const UNNAMED = "file";

/** A file's name in the form of A1. */
export const attachmentName = (name: string): string => {
  const base = name.split(/[/\\]/).at(-1) ?? "";
  const clean = base
    .toWellFormed()
    .normalize("NFC")
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, "")
    .trim();
  return clean === "" || clean === "." || clean === ".." ? UNNAMED : shortenName(clean);
};

/** Cuts a long name before its extension. */
const shortenName = (name: string): string => {
  if (Buffer.byteLength(name) <= ATTACHMENT_NAME_MAX) return name;
  const [extension = ""] = /\.\w{1,16}$/.exec(name) ?? [];
  const characters = Array.from(name.slice(0, name.length - extension.length));
  while (Buffer.byteLength(characters.join("") + extension) > ATTACHMENT_NAME_MAX) characters.pop();
  return characters.join("") + extension;
};

const startsWith = (bytes: Uint8Array, at: number, text: string): boolean =>
  Buffer.from(bytes.subarray(at, at + text.length)).equals(Buffer.from(text, "latin1"));

/** The kinds that A2 is about, with how their bytes begin. */
const BEGINNINGS: readonly (readonly [mediaType: string, begins: (bytes: Uint8Array) => boolean])[] = [
  ["image/png", (bytes) => startsWith(bytes, 0, "\x89PNG\r\n\x1a\n")],
  ["image/jpeg", (bytes) => startsWith(bytes, 0, "\xff\xd8\xff")],
  ["image/gif", (bytes) => startsWith(bytes, 0, "GIF87a") || startsWith(bytes, 0, "GIF89a")],
  ["image/webp", (bytes) => startsWith(bytes, 0, "RIFF") && startsWith(bytes, 8, "WEBP")],
  ["application/pdf", (bytes) => startsWith(bytes, 0, "%PDF-")],
];

/** Whether browsers may show an attachment of this type as an image. */
export const isImage = (mediaType: string): boolean =>
  BEGINNINGS.some(([known]) => known === mediaType && known.startsWith("image/"));

const UNKNOWN = "application/octet-stream";
const MEDIA_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}$/;

/** The bytes as text. Null if they are none. */
export const textIn = (bytes: Uint8Array): string | null => {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
};

/**
 * The kind of a file.
 *
 * @param declared the sender's `Content-Type`.
 */
export const detectMediaType = (declared: string | null, bytes: Uint8Array): string => {
  const signature = BEGINNINGS.find(([, begins]) => begins(bytes));
  if (signature !== undefined) return signature[0];
  const [type = ""] = (declared ?? "").toLowerCase().split(";");
  const isFalse = BEGINNINGS.some(([mediaType]) => mediaType === type.trim());
  // What curl and forms say of every body.
  const isNothing = type.trim() === UNKNOWN || type.trim() === "application/x-www-form-urlencoded";
  if (MEDIA_TYPE.test(type.trim()) && !isFalse && !isNothing) return type.trim();
  return textIn(bytes) === null ? UNKNOWN : "text/plain";
};
