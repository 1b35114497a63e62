/** The tables `[agents.<name>]` of a manifest. Bad tables are reported beside good ones. */
import * as Result from "effect/Result";
import { isRecord } from "../../ground/record.ts";
import { listAgents, type Agents } from "../agents/agents.ts";
import { readAgentTable, type AgentTable } from "../agents/table.ts";
import type { OfferedRuntimes } from "../runtimes/runtimes.ts";
import type { EntryFault } from "../trigger/trigger.ts";
import { lineMatching, type ManifestError } from "./manifest-error.ts";
import { readStatements } from "./toml-text.ts";

/** The most tables in one manifest. */
export const AGENT_LIMIT = 200;

export interface ManifestAgents {
  readonly tables: ReadonlyMap<string, Result.Result<AgentTable, readonly EntryFault[]>>;
  /** The lines of tables and of their fields, by path. */
  readonly lines: ReadonlyMap<string, number>;
}

export const NO_AGENTS: ManifestAgents = { tables: new Map(), lines: new Map() };

const errorAt = (path: string, message: string, line: number | null): ManifestError => ({
  slug: null,
  index: null,
  path,
  message,
  line,
});

/** The first line of each path below `agents`, in a valid document. */
const linesIn = (text: string): ReadonlyMap<string, number> => {
  const lines = new Map<string, number>();
  let [line, counted] = [1, 0];
  for (const { path, from } of readStatements(text)) {
    line += text.slice(counted, from).split("\n").length - 1;
    counted = from;
    if (path[0] !== "agents") continue;
    for (const depth of [2, 3]) {
      const key = path.slice(0, depth).join(".");
      if (path.length >= depth && !lines.has(key)) lines.set(key, line);
    }
  }
  return lines;
};

const faultError = (lines: ManifestAgents["lines"], name: string, fault: EntryFault): ManifestError => {
  const table = `agents.${name}`;
  const path = fault.field === null ? table : `${table}.${fault.field}`;
  return errorAt(path, fault.message, lines.get(path) ?? lines.get(table) ?? null);
};

/** @param value of `agents`; undefined if the file has none */
export const readAgents = (
  value: unknown,
  text: string,
): { readonly agents: ManifestAgents; readonly errors: readonly ManifestError[] } => {
  if (value === undefined) return { agents: NO_AGENTS, errors: [] };
  if (!isRecord(value)) {
    const message = "Write each agent as its own table, such as [agents.reviewer].";
    const line = lineMatching(text, /^[ \t]*(?:\[{1,2}[ \t]*)?agents\b/);
    return { agents: NO_AGENTS, errors: [errorAt("agents", message, line)] };
  }
  const lines = linesIn(text);
  const names = Object.keys(value);
  const tables = new Map(
    names.slice(0, AGENT_LIMIT).map((name) => [name, readAgentTable(name, value[name])] as const),
  );
  const errors = [...tables].flatMap(([name, table]) =>
    Result.isSuccess(table) ? [] : table.failure.map((fault) => faultError(lines, name, fault)),
  );
  if (names.length > AGENT_LIMIT) {
    const message = `A manifest can have at most ${AGENT_LIMIT} agents. The last ${names.length - AGENT_LIMIT} are ignored.`;
    errors.push(errorAt("agents", message, lines.get(`agents.${names[AGENT_LIMIT]}`) ?? null));
  }
  return { agents: { tables, lines }, errors };
};

/** The agents on this installation's runtimes, and the errors of tables that do not fit them. */
export const offeredAgents = (
  { tables, lines }: ManifestAgents,
  runtimes: OfferedRuntimes,
): { readonly agents: Agents; readonly errors: readonly ManifestError[] } => {
  const agents = listAgents(tables, runtimes);
  const errors = [...agents].flatMap(([name, agent]) => {
    const table = tables.get(name);
    const isNew = table !== undefined && Result.isSuccess(table) && Result.isFailure(agent);
    return isNew ? agent.failure.map((fault) => faultError(lines, name, fault)) : [];
  });
  return { agents, errors };
};
