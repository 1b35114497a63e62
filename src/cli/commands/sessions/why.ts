/** `platform sessions why` and its like: why something is in its state, and what would move it. */
import type { Answer } from "../../contract.ts";
import { endpoint } from "../../endpoint/endpoint.ts";
import { table, time, safeLine } from "../../terminal.ts";
import { count } from "../../words.ts";
import { quantity } from "../../../domain/counted.ts";

type Machine = Answer<"GET /v1/account/machine">;

/** How many transitions are shown, unless the caller wants another number. */
const SHOWN = 10;
const options = {
  limit: {
    value: "N",
    about: `How many of the last transitions are shown, 1 to 200 (${SHOWN})`,
    otherwise: SHOWN,
    reads: count,
  },
} as const;

const minutes = (ms: number | null): string => {
  if (ms === null) return "-";
  const seconds = Math.round(ms / 1000);
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
};

const pending = ({ text, since, attempts, last_error: error }: Machine["pending"][number]): string => {
  const crashText =
    attempts === 0 ? "" : `; it crashed ${quantity(attempts, "time")}, last with: ${error ?? "no message"}`;
  return safeLine(`  ${text}, since ${time(since)}${crashText}`);
};

const next = ({ event, to, text, at }: Machine["next"][number], state: string | null): string =>
  safeLine(
    `  ${text} (${event}${to === null || to === state ? "" : ` -> ${to}`}${at === null ? "" : `, ${time(at)}`})`,
  );

const machineText = (label: string, machine: Machine): string => {
  const { state, since, why, transitions } = machine;
  const head = state === null ? label : `${label}: ${state}${since === null ? "" : ` since ${time(since)}`}`;
  const rows = transitions.map(({ at, event, from, to, duration_ms, detail }) => [
    time(at),
    event,
    from === null || from === to ? to : `${from} -> ${to}`,
    minutes(duration_ms),
    detail ?? "",
  ]);
  return [
    safeLine(head),
    ...why.map((sentence) => safeLine(`  ${sentence}`)),
    ...(machine.pending.length === 0 ? [] : ["Under way:", ...machine.pending.map(pending)]),
    "What would move it:",
    ...(machine.next.length === 0 ? ["  Nothing."] : machine.next.map((one) => next(one, state))),
    ...(rows.length === 0 ? [] : [table(["AT", "EVENT", "STATE", "AFTER", "DETAIL"], rows, "")]),
  ].join("\n");
};

export const sessionsWhy = endpoint("GET /v1/projects/:pid/sessions/:sid/machine", {
  name: "sessions why",
  about: "Show why a session is in its state, and what would move it",
  takes: ["[SESSION]"],
  options,
  shows: (machine) => machineText("session", machine),
});

export const triggersWhy = endpoint("GET /v1/projects/:pid/triggers/:slug/machine", {
  name: "triggers why",
  about: "Show why a trigger fires or waits, and what would move it",
  takes: ["SLUG"],
  options,
  shows: (machine) => machineText("trigger", machine),
});

export const accountWhy = endpoint("GET /v1/account/machine", {
  name: "account why",
  about: "Show whether the account's queue is at work, and what would start the next fire",
  options,
  shows: (machine) => machineText("account", machine),
});
