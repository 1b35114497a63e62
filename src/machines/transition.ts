/** The row that a step leaves in the history of an actor (store/ports/transitions.ts). */
import { isRecord } from "../ground/record.ts";
import { cutText, storableText } from "../domain/text.ts";
import type { Named, Snapshot } from "./step.ts";
import { quantity } from "../domain/counted.ts";

/** The longest detail, and the longest error of a command, in characters. */
export const DETAIL_MAX = 500;

export interface NewTransition {
  readonly at: number;
  readonly event: string;
  /** Null if the actor began. */
  readonly from: string | null;
  readonly to: string;
  /** Of the event, in words. */
  readonly detail: string | null;
  /** Names of the commands that the step ordered. */
  readonly commands: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;

const asFields = (value: unknown): Fields | null => (isRecord(value) ? value : null);

const text = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);

/** A failure, or the error of a message: a code and a sentence. Their messages are made for people (domain/session/failure.ts). */
const problem = (value: unknown): string | null => {
  const fields = asFields(value);
  const message = text(fields?.["message"]);
  return message === null ? null : `${text(fields?.["code"]) ?? "error"}: ${message}`;
};

const savedWork = (value: unknown): string | null => {
  const fields = asFields(value);
  if (fields === null) return null;
  const [error, wip, state] = [text(fields["error"]), text(fields["wip"]), text(fields["state"])];
  const isSome = state === "partial" || state === "failed";
  if (isSome)
    return `${state === "failed" ? "not saved" : "saved in part"}: ${error ?? "no reason is known"}`;
  if (wip !== null) return `saved as commit ${wip}`;
  return text(fields["node"]) === null ? "nothing was left to save" : "saved";
};

const refusedMerge = (value: unknown): string | null => {
  const fields = asFields(value);
  if (fields === null) return null;
  if (fields["because"] === "git") return problem(fields);
  if (fields["because"] !== "conflict") return "the branch has no changes";
  const paths = Array.isArray(fields["paths"])
    ? fields["paths"].filter((path) => typeof path === "string")
    : [];
  return paths.length === 0 ? "the histories are unrelated" : `conflicts in ${paths.join(", ")}`;
};

const nextInstant = (value: unknown): string | null => {
  const due = asFields(value)?.["due"];
  // oxlint-disable-next-line no-restricted-globals -- the instant came with the event
  return typeof due === "number" ? `the next instant is ${new Date(due).toISOString()}` : null;
};

const report = (event: Fields): string | null => {
  const { ended, isWorking, requests } = event;
  if (typeof ended !== "number" || !Array.isArray(requests)) return null;
  const asks = requests.length === 0 ? "" : `, ${quantity(requests.length, "open request")}`;
  return `${quantity(ended, "turn has", "turns have")} ended${isWorking === true ? ", one runs" : ""}${asks}`;
};

/** How a stop saves (domain/save/order.ts). */
const SAVES: Readonly<Record<string, string>> = {
  require: "only if everything is saved",
  skip: "without a save",
};

/** An allow-list. Everything else of an event stays out of the history, above all prompts and messages of people. */
const PARTS: readonly ((event: Fields) => string | null)[] = [
  ({ failure }) => problem(failure),
  ({ error }) => problem(error),
  ({ saved }) => savedWork(saved),
  ({ refusal }) => refusedMerge(refusal),
  ({ next }) => nextInstant(next),
  ({ commit }) => (text(commit) === null ? null : `commit ${text(commit)}`),
  ({ more }) => (more === true ? "more fires wait" : null),
  ({ restoreSaved }) => (restoreSaved === true ? "with its saved work" : null),
  ({ save }) => (text(save) === null ? null : (SAVES[text(save) ?? ""] ?? null)),
  ({ isLast }) => (isLast === true ? "with what can be saved" : null),
  ({ isUrgent }) => (isUrgent === true ? "urgent" : null),
  ({ turn }) => (typeof turn === "number" ? `turn ${turn}` : null),
  report,
];

export const boundDetail = (value: string): string => cutText(storableText(value), DETAIL_MAX);

/** What an event says for people. Null means nothing that its name does not say. */
export const eventDetail = (event: Named): string | null => {
  const fields: Fields = { ...event };
  const parts = PARTS.flatMap((part) => part(fields) ?? []);
  return parts.length === 0 ? null : boundDetail(parts.join("; "));
};

interface Step {
  readonly event: Named;
  readonly before: Snapshot<string, object>;
  readonly after: Snapshot<string, object>;
  readonly commands: readonly Named[];
  readonly now: number;
}

/** Contexts are plain JSON. Equal ones in another order of fields count as different, which costs a row. */
export const isSame = (one: object, other: object): boolean => JSON.stringify(one) === JSON.stringify(other);

/** The row of a step. Null if the step changed nothing and ordered nothing. */
export const transitionRow = ({ event, before, after, commands, now }: Step): NewTransition | null => {
  const isMove = before.state !== after.state;
  if (!isMove && commands.length === 0 && isSame(before.context, after.context)) return null;
  return {
    at: now,
    event: event.type,
    from: before.state,
    to: after.state,
    detail: eventDetail(event),
    commands: commands.map(({ type }) => type),
  };
};

/** The event of a first row. No machine has it: the actor was created. */
export const CREATED = "created";

/** What started a session, for its first row. */
export const sessionOrigin = ({ triggerSlug }: { readonly triggerSlug: string | null }): string | null =>
  triggerSlug === null ? null : `by the trigger ${triggerSlug}`;

/** The row of a new actor. */
export const firstTransition = (
  {
    snapshot,
    commands,
  }: { readonly snapshot: Snapshot<string, object>; readonly commands: readonly Named[] },
  { now, detail = null }: { readonly now: number; readonly detail?: string | null },
): NewTransition => ({
  at: now,
  event: CREATED,
  from: null,
  to: snapshot.state,
  detail: detail === null ? null : boundDetail(detail),
  commands: commands.map(({ type }) => type),
});
