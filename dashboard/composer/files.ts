/** Files of a message: which ones the service takes. */
import { size } from "../elements/format.ts";

/** A file that the service keeps, until a message has it. */
export interface Attachment {
  readonly id: string;
  readonly name: string;
  readonly media_type: string;
  readonly bytes: number;
}

/** The service's own limits (api.md 3, messages). */
export const [COUNT_MAX, FILE_MAX, ALL_MAX] = [10, 10 * 1024 * 1024, 25 * 1024 * 1024] as const;

const TOO_LARGE = `The files of a message have at most ${size(ALL_MAX)} together.`;

/**
 * @param bytes of the file
 * @param others bytes of the files before it, together
 * @returns why the file cannot be attached, or null
 */
export const refusalOf = (bytes: number, others: number): string | null => {
  if (bytes === 0) return "The file is empty.";
  if (bytes > FILE_MAX) return `A file has at most ${size(FILE_MAX)}.`;
  return others + bytes > ALL_MAX ? TOO_LARGE : null;
};

/** @returns why these files cannot be attached to one message, or null */
export const faultOfFiles = (files: readonly Pick<File, "name" | "size">[]): string | null => {
  if (files.length > COUNT_MAX) return `A message has at most ${COUNT_MAX} files.`;
  for (const { name, size: bytes } of files) {
    const refusal = refusalOf(bytes, 0);
    if (refusal !== null) return `“${name}”: ${refusal}`;
  }
  return files.reduce((sum, { size: bytes }) => sum + bytes, 0) > ALL_MAX ? TOO_LARGE : null;
};
