/** Headers of requests to a collector, as OTEL_EXPORTER_OTLP_HEADERS has them. */
import * as Result from "effect/Result";
import { decodePercent } from "../text.ts";

const EXPECTED = "`name=value` pairs, separated by commas, with percent escapes in values";
/** A header's name, and a value without control characters. */
const NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
const VALUE = /^[\x20-\x7e]*$/;

/** @returns the headers by lower-case name, or what was expected; never the given value, which may be a credential */
export const parseOtlpHeaders = (text: string): Result.Result<Readonly<Record<string, string>>, string> => {
  const headers: Record<string, string> = {};
  if (text.trim() === "") return Result.succeed(headers);
  for (const pair of text.split(",")) {
    const at = pair.indexOf("=");
    const [name, escaped] = [pair.slice(0, Math.max(0, at)).trim(), pair.slice(at + 1).trim()];
    const value = decodePercent(escaped);
    if (!NAME.test(name) || value === null || !VALUE.test(value)) return Result.fail(EXPECTED);
    headers[name.toLowerCase()] = value;
  }
  return Result.succeed(headers);
};
