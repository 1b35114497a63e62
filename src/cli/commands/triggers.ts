/** `platform triggers` and `platform queue`: triggers, their fires, and the waiting fires. */
import type { Answer } from "../contract.ts";
import { type Columns, recordTable } from "../endpoint/columns.ts";
import { choices, endpoint } from "../endpoint/endpoint.ts";
import { usageFailure } from "../failure.ts";
import { safeLine, safeLines } from "../terminal.ts";
import { accountWhy, triggersWhy } from "./sessions/why.ts";
import { parseJson } from "../../ground/record.ts";

type Listing = Answer<"GET /v1/projects/:pid/triggers">;
type Trigger = Listing["triggers"][number];
type Fire = Answer<"GET /v1/projects/:pid/fires">["fires"][number];

const FIRES = "GET /v1/projects/:pid/fires";

const triggerState = ({ enabled }: Trigger, isPaused: boolean): string =>
  enabled ? (isPaused ? "paused" : "on") : "off";

/** What a filter includes although it starts nothing by default. */
const INCLUDED = ["deletions", "own_pushes", "own_requests", "own_comments"] as const;

/** A filter in one line. */
const filterText = ({ filter }: Trigger): string => {
  if (filter === undefined) return "";
  const pairs = (of: typeof filter.if) =>
    Object.entries(of ?? {}).map(([path, value]) => `${path} = ${String(value)}`);
  return [
    ...(filter.events === null ? [] : [filter.events.join(", ")]),
    ...(filter.branches === null ? [] : [`on ${filter.branches.join(", ")}`]),
    ...pairs(filter.if),
    ...pairs(filter.unless).map((pair) => `unless ${pair}`),
    ...INCLUDED.flatMap((field) => (filter[field] ? [field.replace("_", " ")] : [])),
  ].join("; ");
};

const PAUSED =
  "All triggers of this project are paused. Webhook deliveries get a 404 response; see `platform triggers refused`.";

/** The triggers, and below them the errors of invalid entries. */
export const triggersText = ({
  triggers,
  errors,
  manifest,
  warnings,
  triggers_paused: paused,
}: Listing): string => {
  const columns: Columns<Trigger> = {
    SLUG: "slug",
    TYPE: "type",
    STATE: (trigger) => triggerState(trigger, paused),
    "LAST FIRED": "last_fired_at",
    NEXT: "next_fire_at",
    ONLY: filterText,
    WHEN: (trigger) => trigger.cron ?? trigger.webhook_url ?? "",
  };
  const wrong = errors.map(({ slug, path, line, message }) => {
    const place = [slug, path, line === null ? null : `line ${line}`]
      .filter((part) => part !== null)
      .join(", ");
    return safeLine(`error: ${place === "" ? "" : `${place}: `}${message}`);
  });
  const stale = manifest.stale
    ? ["The manifest cannot be read. The triggers of its last valid version stay active."]
    : [];
  const warningLines = warnings.map(({ message }) => safeLine(message));
  return [
    recordTable(columns, triggers, "No triggers."),
    ...wrong,
    ...stale,
    ...warningLines,
    ...(paused ? [PAUSED] : []),
  ].join("\n");
};

const replayText = ({ status, session_id: id }: Answer<"POST /v1/projects/:pid/fires/:id/replay">): string =>
  safeLine(`${status}: session ${id}`);

const FORM = "application/x-www-form-urlencoded";

/** A form's body is text. Any other is JSON. */
const parsedBody = (text: string, contentType: string | undefined): unknown => {
  if (contentType?.startsWith(FORM) === true) return text;
  const body = parseJson(text);
  if (body === undefined) throw usageFailure("The file of --body-file is not valid JSON.");
  return body;
};

const OUTCOMES = {
  fires: null,
  pong: "This is a ping. The service answers it and does not start a session.",
  filtered: "The delivery does not match the trigger's filter. It would not start a session.",
  deletion: "The delivery tells of a deleted branch or tag. It would not start a session.",
  own_push: "The delivery is a push to a session's own branch. It would not start a session.",
  own_request: "The delivery is about the service's own pull request. It would not start a session.",
  own_comment: "The delivery is the service's own comment. It would not start a session.",
} as const;

/** What became of its session, with the code of a failure. */
const outcomeWords = ({ outcome }: Fire): string => {
  if (outcome === null) return "-";
  return outcome.code === null ? outcome.state : `${outcome.state} (${outcome.code})`;
};

/** Each is a change request. */
const CHANGES = {
  pause: "Pause a trigger: set enabled = false in platform.toml, by a change request",
  resume: "Resume a paused trigger, by a change request",
  delete: "Delete a trigger from platform.toml, by a change request",
} as const;

/** A trigger's change, or a new one: what became of its change request. */
export const proposalText = ({
  number,
  status,
  title,
}: Answer<"POST /v1/projects/:pid/triggers/proposals">): string => safeLine(`#${number} ${status}: ${title}`);

const changing = (action: keyof typeof CHANGES) =>
  endpoint("POST /v1/projects/:pid/triggers/:slug/proposals", {
    name: `triggers ${action}`,
    about: CHANGES[action],
    takes: ["SLUG"],
    options: { merge: { about: "Merge the change request now, if you may merge" } },
    always: { action },
    shows: proposalText,
  });

export const triggerCommands = [
  endpoint("GET /v1/projects/:pid/triggers", {
    name: "triggers list",
    about: "List the triggers of a project and the errors of its manifest",
    shows: triggersText,
  }),
  triggersWhy,
  endpoint("POST /v1/projects/:pid/triggers/:slug/fire", {
    name: "triggers fire",
    about: "Fire a trigger now and start a session",
    takes: ["SLUG"],
    options: {
      text: { value: "TEXT", about: "message.text of the prompt's template" },
      source: { value: "TEXT", about: "message.source" },
    },
    shows: replayText,
  }),
  endpoint("POST /v1/projects/:pid/triggers/:slug/preview", {
    name: "triggers preview",
    about: "Print the prompt of a trigger without starting a session",
    takes: ["SLUG"],
    options: {
      kind: {
        value: "KIND",
        about: "Kind of fire: manual, webhook or cron (manual)",
        otherwise: "manual",
      },
      "body-file": {
        value: "FILE",
        about: "A webhook's body, JSON or a form; - is standard input",
        sets: null,
      },
      event: {
        value: "EVENT",
        about: "A webhook's X-GitHub-Event, for the trigger's filter",
        sets: null,
      },
      "content-type": {
        value: "TYPE",
        about: `A webhook's Content-Type, such as ${FORM}`,
        sets: null,
      },
      text: { value: "TEXT", about: "message.text of a manual fire" },
      source: { value: "TEXT", about: "message.source of a manual fire" },
      at: { value: "INSTANT", about: "The instant of a cron fire, such as 2027-01-31T02:30:00.000Z" },
    },
    sends: async ({ options: { "body-file": file, event, "content-type": type }, input }) => {
      const headers = {
        ...(event !== undefined && { "x-github-event": event }),
        ...(type !== undefined && { "content-type": type }),
      };
      const body = file === undefined ? undefined : parsedBody(await input.file(file, "--body-file"), type);
      return {
        payload: {
          ...(body !== undefined && { body }),
          ...(Object.keys(headers).length > 0 && { headers }),
        },
      };
    },
    shows: ({ outcome, prompt }, { note }) => {
      const words = OUTCOMES[outcome];
      if (words !== null) note(words);
      return safeLines(prompt);
    },
  }),
  changing("pause"),
  changing("resume"),
  changing("delete"),
  endpoint(FIRES, {
    name: "triggers fires",
    about: "List fires of one trigger or of all triggers, newest first",
    takes: ["[SLUG]"],
    options: {
      status: {
        value: "STATUS",
        about: `Only those with this status: ${choices(FIRES, "status").join(", ")}`,
      },
      failed: {
        about: "Only those that could not start, and those whose session or its last turn failed",
        sets: "outcome",
        to: "failed",
      },
    },
    rows: "fires",
    columns: {
      FIRE: "id",
      TRIGGER: "trigger_slug",
      KIND: "kind",
      STATUS: "status",
      OUTCOME: outcomeWords,
      RECEIVED: "received_at",
      "SESSION OR REASON": (fire) => fire.session_id ?? fire.reason,
    },
    none: "No fires.",
  }),
  endpoint("GET /v1/projects/:pid/webhook-refusals", {
    name: "triggers refused",
    about: "List refused webhook deliveries, newest first",
    notes:
      "The service keeps at most 500 for 7 days. If very many arrive at once, it does not record all of them.",
    rows: "webhook_refusals",
    columns: {
      AT: "at",
      TRIGGER: "slug",
      STATUS: "status",
      REASON: "reason",
      EVENT: "event",
      "SENDER'S ID": "delivery_id",
      FROM: (refusal) => refusal.forwarded_for ?? refusal.address,
    },
    none: "No refused deliveries.",
  }),
  endpoint("POST /v1/projects/:pid/fires/:id/replay", {
    name: "triggers replay",
    about: "Replay a fire with its stored request",
    takes: ["FIRE"],
    shows: replayText,
  }),
  endpoint("DELETE /v1/projects/:pid/fires/:id", {
    name: "triggers cancel",
    about: "Cancel a queued fire, or a session that waits",
    asks: "Cancel it? It leaves the queue and does not start.",
    takes: ["FIRE"],
    done: "cancelled",
  }),
  endpoint("GET /v1/queue", {
    name: "queue",
    about: "List the fires and sessions that wait, in the order in which they will start",
    rows: "queue",
    columns: {
      POSITION: "position",
      FIRE: "fire_id",
      "STARTED BY": (waiting) => waiting.trigger_slug ?? waiting.person?.name ?? "a person",
      PROJECT: "project_id",
      SINCE: "queued_at",
      EXPIRES: "expires_at",
      NAME: ({ title }) => title ?? "",
    },
    none: "The queue is empty.",
  }),
  accountWhy,
];
