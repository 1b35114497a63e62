/**
 * The daemon's log: one JSON object a line, numbered, kept in the ring and written to standard output, where the
 * provider collects it. Every text in it is redacted. It never gets prompts.
 */
import * as Logger from "effect/Logger";
import type { Allowance } from "./allowance.ts";
import type { LogRing } from "./log-ring.ts";
import type { Redactor } from "../../src/domain/secret/redactor.ts";

export type LogFields = Readonly<Record<string, string | number | boolean | null>>;

/** Writes one line: the event, and its fields. */
export type Log = (event: string, fields?: LogFields) => void;

/**
 * How far the daemon's own lines may overdraw the allowance of the runtime's output, so that errors are still logged
 * during a flood. The limit is needed because the runtime causes some of these lines too (turns).
 */
const RESERVE_BYTES = 256 * 1024;

export interface LogOptions {
  readonly redactor: Redactor;
  readonly ring: LogRing;
  readonly allowance: Allowance;
}

export const makeLog = ({ redactor, ring, allowance }: LogOptions): Log => {
  let leftOut = 0;
  const add = (event: string, fields: LogFields): void =>
    ring.add((seq) => {
      const text = JSON.stringify({ seq, at: new Date().toISOString(), event, ...fields });
      allowance.spend(Buffer.byteLength(text));
      return text;
    });
  return (event, fields = {}) => {
    if (allowance.bytes < -RESERVE_BYTES) {
      leftOut += 1;
      return;
    }
    if (leftOut > 0) add("lines were dropped", { lines: leftOut });
    leftOut = 0;
    const clean = Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === "string" ? redactor.redact(value) : value,
    ]);
    add(redactor.redact(event), Object.fromEntries(clean) as LogFields);
  };
};

/** Writes the Effect logs of the actor host and its supervisor as lines of the same log. */
export const effectLogger = (log: Log) =>
  Logger.layer([
    Logger.make(({ message, logLevel }) => {
      const parts = Array.isArray(message) ? message : [message];
      log(parts.map((part) => (typeof part === "string" ? part : JSON.stringify(part))).join(" "), {
        level: logLevel,
      });
    }),
  ]);
