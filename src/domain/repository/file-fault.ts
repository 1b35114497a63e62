/** Why a file or a directory cannot be used: the system's error codes in words that end a sentence. */
import { thrownText } from "../../ground/thrown.ts";
const WORDS: Readonly<Record<string, string>> = {
  ENOENT: "it does not exist",
  EEXIST: "a file is in its place",
  ENOTDIR: "a part of its path is a file and not a directory",
  EISDIR: "it is a directory",
  EACCES: "this user may not use it",
  EPERM: "this user may not use it",
  EROFS: "its file system is read-only",
  ENOSPC: "the disk is full",
  EDQUOT: "this user's share of the disk is full",
  ENAMETOOLONG: "its name is too long",
};

/** The words for an error, or its own text if its code is unknown. */
export const fileFault = (error: unknown): string => {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return WORDS[code] ?? thrownText(error);
};

/** Whether the system refused a write because the disk, or the user's share of it, is full. */
export const isOutOfSpace = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && (cause.code === "ENOSPC" || cause.code === "EDQUOT");
