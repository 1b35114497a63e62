/** Who writes an actor's row has read what it is (threats.md I18): an owner with an old version changes nothing. */
import { isDeepStrictEqual } from "node:util";
import * as Exit from "effect/Exit";
import type { TableSet } from "../../twins/store/tables.ts";
import type { Call } from "../world/boundary.ts";

interface Row {
  readonly version: number;
  readonly snapshot: unknown;
}

interface Saving {
  readonly id: string;
  readonly version: number;
  readonly before: unknown;
}

const KINDS = {
  "store.Sessions.memory": "sessions",
  "store.Sandboxes.memory": "sandboxes",
  "store.ChangeRequests.memory": "changeRequests",
} as const;

const rowOf = (
  tables: TableSet,
  { port, given }: Call,
): { readonly row: Row; readonly saving: Saving } | null => {
  const kind = KINDS[port as keyof typeof KINDS] ?? null;
  const saving = given[0] as Saving | undefined;
  const row = kind === null || saving === undefined ? undefined : tables[kind].get(saving.id);
  return row === undefined || saving === undefined ? null : { row, saving };
};

/** Called before a save; the function that it returns is called after it and reports errors. */
export const fenceOf = (
  tables: TableSet,
  call: Call,
): ((exit: Exit.Exit<unknown, unknown>) => readonly string[]) => {
  const former = call.operation === "save" ? rowOf(tables, call) : null;
  if (former === null) return () => [];
  const { row, saving } = former;
  const mayWrite = row.version === saving.version && isDeepStrictEqual(row.snapshot, saving.before);
  return (exit) => {
    const now = rowOf(tables, call)?.row;
    if (mayWrite || now === row) return [];
    const said = Exit.isSuccess(exit) ? "" : ", and was told that it did not";
    return [
      `I18 ${saving.id} was written by who had read version ${saving.version} of ${row.version}${said}`,
    ];
  };
};
