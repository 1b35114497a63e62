/**
 * The daemon's log: one JSON object a line on standard output, where the provider picks it up. Every text in it is
 * redacted; prompts are never given to it.
 */
import * as Logger from "effect/Logger";
import type { Redactor } from "./redact.ts";

export type LogFields = Readonly<Record<string, string | number | boolean | null>>;

/** Writes one line: what happened, and its particulars. */
export type Log = (event: string, fields?: LogFields) => void;

export const makeLog =
  (redactor: Redactor, write: (line: string) => void): Log =>
  (event, fields = {}) => {
    const clean = Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === "string" ? redactor.redact(value) : value,
    ]);
    const line = {
      at: new Date().toISOString(),
      event: redactor.redact(event),
      ...Object.fromEntries(clean),
    };
    write(`${JSON.stringify(line)}\n`);
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
