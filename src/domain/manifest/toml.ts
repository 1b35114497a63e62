/**
 * Reads TOML 1.1 with smol-toml. In addition this file refuses two faults that the specification forbids and smol-toml
 * accepts: a day that its month does not have, and a second byte order mark.
 */
import { isUtf8 } from "node:buffer";
import * as Result from "effect/Result";
import { TomlError, parse } from "smol-toml";

export type Table = Readonly<Record<string, unknown>>;

/** The error in a document, as the end of a sentence, with its line from 1 if it is known. */
export interface TomlFault {
  readonly what: string;
  readonly line: number | null;
}

/** Reads a document. Never throws: no file may cause a defect in the service. */
export const parseToml = (bytes: Uint8Array): Result.Result<Table, TomlFault> => {
  if (!isUtf8(bytes)) return Result.fail({ what: "is not UTF-8 text", line: firstBadLine(bytes) });
  // The parser removes one byte order mark itself, so the decoder must keep it.
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  const document = parseText(text);
  if (Result.isFailure(document)) return document;
  const day = impossibleDay(text);
  return day === null ? document : Result.fail(day);
};

/** A line feed is never part of a longer UTF-8 sequence, so each line can be checked by itself. */
const firstBadLine = (bytes: Uint8Array): number => {
  let line = 1;
  let from = 0;
  for (;;) {
    const end = bytes.indexOf(0x0a, from);
    if (end === -1 || !isUtf8(bytes.subarray(from, end))) return line;
    from = end + 1;
    line += 1;
  }
};

const parseText = (text: string): Result.Result<Table, TomlFault> => {
  try {
    // A number that no trigger can use must not make the whole file unreadable (threats.md M09).
    return Result.succeed(parse(text, { integersAsBigInt: "asNeeded" }));
  } catch (error) {
    // Any other error is a failure of the parser itself, for example a stack overflow.
    if (!(error instanceof TomlError)) return Result.fail({ what: "cannot be read", line: null });
    const [reason = ""] = error.message.replace("Invalid TOML document: ", "").split("\n");
    return Result.fail({ what: `is not valid TOML: ${reason}, at column ${error.column}`, line: error.line });
  }
};

const DATE = /[0-9]{4}-[0-9]{2}-[0-9]{2}/g;
const MARKS = "abcdefghij";

const isDay = (date: string): boolean => {
  const [year = 0, month = 0, day = 0] = date.split("-").map(Number);
  return new Date(Date.UTC(2000 + (year % 400), month - 1, day)).getUTCDate() === day;
};

/**
 * The first date in the document with a day that its month does not have. Inside a string, a comment or a key a date is
 * only text. So the test puts letters in place of the day: in text they change nothing, and in a value they make it
 * unreadable.
 */
const impossibleDay = (text: string): TomlFault | null => {
  const impossible: string[] = [];
  const markedText = text.replaceAll(DATE, (date) => {
    if (isDay(date)) return date;
    impossible.push(date);
    return date.slice(0, -2) + Array.from(date.slice(-2), (digit) => MARKS[Number(digit)]).join("");
  });
  if (impossible.length === 0) return null;
  const reading = parseText(markedText);
  if (Result.isSuccess(reading)) return null;
  const { line } = reading.failure;
  const own = line === null ? "" : (text.split("\n")[line - 1] ?? "");
  const date = impossible.find((candidate) => own.includes(candidate)) ?? impossible[0];
  return { what: `is not valid TOML: ${date} is not a valid date`, line };
};
