/**
 * The daemon's log: one JSON object a line, numbered, kept in the ring and written to standard output, where the provider
 * picks it up. Every text in it is redacted; prompts are never given to it.
 */
import * as Logger from "effect/Logger";
import type { Allowance } from "../allowance.ts";
import type { LogRing } from "./log-ring.ts";
import type { Redactor } from "./redact.ts";

export type LogFields = Readonly<Record<string, string | number | boolean | null>>;

/** Writes one line: what happened, and its particulars. */
export type Log = (event: string, fields?: LogFields) => void;

/**
 * By how much the daemon's own lines may overdraw the allowance that the runtime's output is held to: what goes wrong in a
 * flood is still told. Some of them are caused by the runtime too (turns), so there is an end to it.
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

/** Leads what the actor host and its supervisor log through Effect into the same lines. */
export const effectLogger = (log: Log) =>
  Logger.layer([
    Logger.make(({ message, logLevel }) => {
      const parts = Array.isArray(message) ? message : [message];
      log(parts.map((part) => (typeof part === "string" ? part : JSON.stringify(part))).join(" "), {
        level: logLevel,
      });
    }),
  ]);
