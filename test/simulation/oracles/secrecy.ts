/**
 * Secret values: a project's secrets and the tokens of sandboxes, in plain text, anywhere except in their own
 * sandboxes (threats.md I16). The check searches every line of the log, the tables, and the trace, which has the
 * answers.
 */
import { Buffer } from "node:buffer";
import { inspect } from "node:util";
import type { TableSet } from "../../twins/store/tables.ts";
import { HOOK_VALUE } from "../world/manifests.ts";

/** Shorter values would be found by chance. */
const SHORTEST = 12;
const IN_FULL = { depth: 8, breakLength: Infinity, maxArrayLength: null, maxStringLength: null } as const;

/** As text, bytes and maps included. */
const textOf = (value: unknown): string =>
  JSON.stringify(value, (_key, part: unknown) => {
    if (part instanceof Map) return [...(part as ReadonlyMap<unknown, unknown>)];
    if (part instanceof Uint8Array) return Buffer.from(part).toString("latin1");
    return part;
  });

const tablesText = (tables: TableSet): string => {
  const { sessionOutbox, sandboxOutbox } = tables;
  const commands = [
    ...[...sessionOutbox.actors()].map((id) => sessionOutbox.of(id)),
    ...[...sandboxOutbox.actors()].map((id) => sandboxOutbox.of(id)),
  ];
  return textOf([
    commands,
    tables.accounts,
    tables.tokens,
    tables.projects,
    tables.requests,
    tables.sessions,
    tables.sandboxes,
    tables.fires,
    tables.queue,
    tables.events.rows,
    tables.secrets,
    tables.settings,
    tables.logs,
    tables.cloneCredentials,
    tables.previews,
  ]);
};

export class Secrecy {
  readonly faults: string[] = [];
  readonly #secrets = new Set([HOOK_VALUE]);

  /** Something that a sandbox was given. */
  keep(value: string): void {
    if (value.length >= SHORTEST) this.#secrets.add(value);
  }

  #look(text: string, where: string): void {
    for (const secret of this.#secrets)
      if (text.includes(secret)) this.faults.push(`I16 a secret stands in ${where}`);
  }

  lookAtLog(message: unknown, cause: unknown): void {
    const text = inspect([message, cause], IN_FULL);
    this.#look(text, `the log: ${text.slice(0, 60)}`);
  }

  lookAtRest(tables: TableSet, trace: readonly string[]): readonly string[] {
    this.#look(tablesText(tables), "the tables");
    this.#look(trace.join("\n"), "an answer");
    return this.faults;
  }
}
