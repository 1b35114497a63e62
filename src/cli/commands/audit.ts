/** `platform audit`: who did what, as a page for people or as JSON lines for an archive. */
import type { AuditAction } from "../../domain/person/audit.ts";
import type { Answer } from "../contract.ts";
import { command } from "../command.ts";
import { EXIT, Failure, usageFailure } from "../failure.ts";
import { table, safeJson } from "../terminal.ts";
import { anyId, projectId } from "../words.ts";
import { page, pageOptions, pageOutcome } from "./lists.ts";

type AuditEvent = Answer<"GET /v1/audit">["events"][number];

const DAY = /^\d{4}-\d\d-\d\d$/;
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)$/;

/** A day is its beginning, in UTC. */
const moment = (text: string, option: string): string => {
  const at = DAY.test(text) || INSTANT.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at))
    throw usageFailure(`${option} must be a day or an instant, such as 2027-01-31T00:00:00Z.`);
  return new Date(at).toISOString();
};

const who = ({ actor }: AuditEvent): string =>
  actor.kind === "person"
    ? (actor.name ?? actor.id ?? "person")
    : [actor.kind, actor.name ?? ""].join(" ").trim();

const row = (event: AuditEvent): readonly string[] => [
  `${event.at.slice(0, 19).replace("T", " ")}Z`,
  who(event),
  event.action,
  event.target ?? "-",
  event.outcome,
  event.address ?? "-",
];

/** Writes the lines as they come. */
const copy = async (pieces: AsyncIterable<Buffer>, write: (text: string) => void): Promise<void> => {
  // A piece may end inside a character.
  const decoder = new TextDecoder();
  try {
    for await (const piece of pieces) write(safeJson(decoder.decode(piece, { stream: true })));
  } catch {
    throw new Failure(EXIT.tryAgain, "broken_off", {
      message: "The service broke the export off, so the output is not complete. Run the command again.",
    });
  }
};

export const audit = command({
  name: "audit",
  about: "List who did what, newest first",
  options: {
    actor: { value: "ACTOR", about: "Only what this person did, or the agent of this session" },
    action: { value: "ACTION", about: "Only this action, such as secret.set" },
    project: { value: "PROJECT", about: "Only in this project" },
    since: { value: "INSTANT", about: "From this day or instant on, such as 2027-01-31" },
    until: { value: "INSTANT", about: "Before this day or instant" },
    export: { about: "Print all rows as JSON lines" },
    ...pageOptions,
  },
  notes: `An owner of the account sees the account's record, with --project also an owner of that project. --export prints one JSON
object a line. If the output breaks off, the command fails.`,
  run: async ({ options, note, write, api }) => {
    const filters = {
      ...(options.actor !== undefined && { actor: anyId(options.actor, "--actor") }),
      // The service knows the actions, and names them if this is none.
      ...(options.action !== undefined && { action: options.action as AuditAction }),
      ...(options.since !== undefined && { since: moment(options.since, "--since") }),
      ...(options.until !== undefined && { until: moment(options.until, "--until") }),
      ...page(options),
    };
    const pid = options.project === undefined ? null : projectId(options.project, "--project");
    if (options.export) {
      const query = new URLSearchParams();
      for (const [name, value] of Object.entries(filters)) query.set(name, String(value));
      const path = pid === null ? "/audit" : `/projects/${pid}/audit`;
      const rows = await api().stream(`${path}?${query}`, { accept: "application/x-ndjson" });
      await copy(rows, write);
      return "writes";
    }
    const answer =
      pid === null
        ? await api().call("GET /v1/audit", { query: filters })
        : await api().call("GET /v1/projects/:pid/audit", { params: { pid }, query: filters });
    const columns = ["AT", "WHO", "ACTION", "TARGET", "OUTCOME", "ADDRESS"];
    return pageOutcome(answer, table(columns, answer.value.events.map(row), "Nothing on record."), note);
  },
});

export const auditCommands = [audit];
