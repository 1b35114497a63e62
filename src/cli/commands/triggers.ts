/** `platform triggers` and `platform queue`: triggers, their fires, and the waiting fires. */
import type { Answer } from "../contract.ts";
import { command } from "../command.ts";
import { usage } from "../failure.ts";
import { table, time, timeOrDash, visible, visibleLines } from "../terminal.ts";
import { anyId, oneOf, segment } from "../words.ts";
import { page, pageOptions, pageOutcome } from "./lists.ts";
import { accountWhy, triggersWhy } from "./sessions/why.ts";
import { parseJson } from "../../ground/record.ts";

type Listing = Answer<"GET /v1/projects/:pid/triggers">;
type Fire = Answer<"GET /v1/projects/:pid/fires">["fires"][number];

const SLUG = "SLUG";
const FIRE = "FIRE";
const STATUSES = ["queued", "fired", "failed", "skipped", "expired", "cancelled", "duplicate"] as const;

const stateOf = ({ enabled }: Listing["triggers"][number], paused: boolean): string =>
  enabled ? (paused ? "paused" : "on") : "off";

/** What a filter includes although it starts nothing by default. */
const INCLUDED = ["deletions", "own_pushes", "own_requests", "own_comments"] as const;

/** A filter in one line. */
const filterOf = ({ filter }: Listing["triggers"][number]): string => {
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
export const listed = ({
  triggers,
  errors,
  manifest,
  warnings,
  triggers_paused: paused,
}: Listing): string => {
  const rows = triggers.map((trigger) => [
    trigger.slug,
    trigger.type,
    stateOf(trigger, paused),
    timeOrDash(trigger.last_fired_at),
    timeOrDash(trigger.next_fire_at),
    filterOf(trigger),
    trigger.cron ?? trigger.webhook_url ?? "",
  ]);
  const wrong = errors.map(({ slug, path, line, message }) => {
    const place = [slug, path, line === null ? null : `line ${line}`]
      .filter((part) => part !== null)
      .join(", ");
    return visible(`error: ${place === "" ? "" : `${place}: `}${message}`);
  });
  const stale = manifest.stale
    ? ["The manifest cannot be read. The triggers of its last valid version stay active."]
    : [];
  const warned = warnings.map(({ message }) => visible(message));
  const headings = ["SLUG", "TYPE", "STATE", "LAST FIRED", "NEXT", "ONLY", "WHEN"];
  return [
    table(headings, rows, "No triggers."),
    ...wrong,
    ...stale,
    ...warned,
    ...(paused ? [PAUSED] : []),
  ].join("\n");
};

const list = command({
  name: "triggers list",
  about: "List the triggers of a project and the errors of its manifest",
  inProject: true,
  run: async ({ api, project }) => {
    const { value, text } = await api().call("GET /v1/projects/:pid/triggers", {
      params: { pid: await project() },
    });
    return { json: text, text: listed(value) };
  },
});

const fire = command({
  name: "triggers fire",
  about: "Fire a trigger now and start a session",
  takes: [SLUG],
  inProject: true,
  options: {
    text: { value: "TEXT", about: "message.text of the prompt's template" },
    source: { value: "TEXT", about: "message.source" },
  },
  run: async ({ given, options: { text: message, source }, api, project }) => {
    const { value, text } = await api().call("POST /v1/projects/:pid/triggers/:slug/fire", {
      params: { pid: await project(), slug: segment(given.SLUG, SLUG) },
      payload: { ...(message !== undefined && { text: message }), ...(source !== undefined && { source }) },
    });
    return { json: text, text: visible(`${value.status}: session ${value.session_id}`) };
  },
});

const FORM = "application/x-www-form-urlencoded";

/** A form's body is text. Any other is JSON. */
const parsedBody = (text: string, contentType: string | undefined): unknown => {
  if (contentType?.startsWith(FORM) === true) return text;
  const body = parseJson(text);
  if (body === undefined) throw usage("The file of --body-file is not valid JSON.");
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

const preview = command({
  name: "triggers preview",
  about: "Print the prompt of a trigger without starting a session",
  takes: [SLUG],
  inProject: true,
  options: {
    kind: { value: "KIND", about: "Kind of fire: manual, webhook or cron (manual)" },
    "body-file": { value: "FILE", about: "A webhook's body, JSON or a form; - is standard input" },
    event: { value: "EVENT", about: "A webhook's X-GitHub-Event, for the trigger's filter" },
    "content-type": { value: "TYPE", about: `A webhook's Content-Type, such as ${FORM}` },
    text: { value: "TEXT", about: "message.text of a manual fire" },
    source: { value: "TEXT", about: "message.source of a manual fire" },
    at: { value: "INSTANT", about: "The instant of a cron fire, such as 2027-01-31T02:30:00.000Z" },
  },
  run: async ({ given, options, input, note, api, project }) => {
    const { "body-file": file, text: message, source, at, event, "content-type": contentType } = options;
    const kind = oneOf(options.kind, ["manual", "webhook", "cron"], "--kind") ?? "manual";
    const body =
      file === undefined ? undefined : parsedBody(await input.file(file, "--body-file"), contentType);
    const headers = {
      ...(event !== undefined && { "x-github-event": event }),
      ...(contentType !== undefined && { "content-type": contentType }),
    };
    const { value, text } = await api().call("POST /v1/projects/:pid/triggers/:slug/preview", {
      params: { pid: await project(), slug: segment(given.SLUG, SLUG) },
      payload: {
        kind,
        ...(body !== undefined && { body }),
        ...(Object.keys(headers).length > 0 && { headers }),
        ...(message !== undefined && { text: message }),
        ...(source !== undefined && { source }),
        ...(at !== undefined && { at }),
      },
    });
    const outcome = OUTCOMES[value.outcome];
    if (outcome !== null) note(outcome);
    return { json: text, text: visibleLines(value.prompt) };
  },
});

/** What became of its session, with the code of a failure. */
const outcomeWords = ({ outcome }: Fire): string => {
  if (outcome === null) return "-";
  return outcome.code === null ? outcome.state : `${outcome.state} (${outcome.code})`;
};

const fireRow = (row: Fire): readonly string[] => [
  row.id,
  row.trigger_slug ?? "-",
  row.kind,
  row.status,
  outcomeWords(row),
  time(row.received_at),
  row.session_id ?? row.reason ?? "-",
];

const fires = command({
  name: "triggers fires",
  about: "List fires of one trigger or of all triggers, newest first",
  takes: [`[${SLUG}]`],
  inProject: true,
  options: {
    status: { value: "STATUS", about: `Only those with this status: ${STATUSES.join(", ")}` },
    failed: { about: "Only those that could not start, and those whose session or its last turn failed" },
    ...pageOptions,
  },
  run: async ({ given, options, note, api, project }) => {
    const status = oneOf(options.status, STATUSES, "--status");
    const slug = given.SLUG === undefined ? undefined : segment(given.SLUG, SLUG);
    const answered = await api().call("GET /v1/projects/:pid/fires", {
      params: { pid: await project() },
      query: {
        ...page(options),
        ...(status !== undefined && { status }),
        ...(slug !== undefined && { slug }),
        ...(options.failed && { outcome: "failed" as const }),
      },
    });
    const rows = answered.value.fires.map(fireRow);
    return pageOutcome(
      answered,
      table(
        ["FIRE", "TRIGGER", "KIND", "STATUS", "OUTCOME", "RECEIVED", "SESSION OR REASON"],
        rows,
        "No fires.",
      ),
      note,
    );
  },
});

const refused = command({
  name: "triggers refused",
  about: "List refused webhook deliveries, newest first",
  inProject: true,
  options: pageOptions,
  notes:
    "The service keeps at most 500 for 7 days. If very many arrive at once, it does not record all of them.",
  run: async ({ options, note, api, project }) => {
    const answered = await api().call("GET /v1/projects/:pid/webhook-refusals", {
      params: { pid: await project() },
      query: page(options),
    });
    const rows = answered.value.webhook_refusals.map((row) => [
      time(row.at),
      row.slug,
      String(row.status),
      row.reason,
      row.event ?? "-",
      row.delivery_id ?? "-",
      row.forwarded_for ?? row.address,
    ]);
    const headings = ["AT", "TRIGGER", "STATUS", "REASON", "EVENT", "SENDER'S ID", "FROM"];
    return pageOutcome(answered, table(headings, rows, "No refused deliveries."), note);
  },
});

const replay = command({
  name: "triggers replay",
  about: "Replay a fire with its stored request",
  takes: [FIRE],
  inProject: true,
  run: async ({ given, api, project }) => {
    const { value, text } = await api().call("POST /v1/projects/:pid/fires/:id/replay", {
      params: { pid: await project(), id: anyId(given.FIRE, FIRE) },
    });
    return { json: text, text: visible(`${value.status}: session ${value.session_id}`) };
  },
});

const cancel = command({
  name: "triggers cancel",
  about: "Cancel a queued fire, or a session that waits",
  asks: "Cancel it? It leaves the queue and does not start.",
  takes: [FIRE],
  inProject: true,
  run: async ({ given, api, project }) => {
    const id = anyId(given.FIRE, FIRE);
    const { text } = await api().call("DELETE /v1/projects/:pid/fires/:id", {
      params: { pid: await project(), id },
    });
    return { json: text, text: `${id} cancelled` };
  },
});

/** Each is a change request. */
const CHANGES = {
  pause: "Pause a trigger: set enabled = false in platform.toml, by a change request",
  resume: "Resume a paused trigger, by a change request",
  delete: "Delete a trigger from platform.toml, by a change request",
} as const;

const changing = (action: keyof typeof CHANGES) =>
  command({
    name: `triggers ${action}`,
    about: CHANGES[action],
    takes: [SLUG],
    inProject: true,
    options: { merge: { about: "Merge the change request now, if you may merge" } },
    run: async ({ given, options: { merge }, api, project }) => {
      const { value, text } = await api().call("POST /v1/projects/:pid/triggers/:slug/proposals", {
        params: { pid: await project(), slug: segment(given.SLUG, SLUG) },
        payload: { action, merge },
      });
      return { json: text, text: visible(`#${value.number} ${value.status}: ${value.title}`) };
    },
  });

const queue = command({
  name: "queue",
  about: "List the fires and sessions that wait, in the order in which they will start",
  options: pageOptions,
  run: async ({ options, note, api }) => {
    const answered = await api().call("GET /v1/queue", { query: page(options) });
    const rows = answered.value.queue.map((waiting) => [
      String(waiting.position),
      waiting.fire_id,
      waiting.trigger_slug ?? waiting.person?.name ?? "a person",
      waiting.project_id,
      time(waiting.queued_at),
      time(waiting.expires_at),
      waiting.title ?? "",
    ]);
    return pageOutcome(
      answered,
      table(
        ["POSITION", "FIRE", "STARTED BY", "PROJECT", "SINCE", "EXPIRES", "NAME"],
        rows,
        "The queue is empty.",
      ),
      note,
    );
  },
});

export const triggerCommands = [
  list,
  triggersWhy,
  fire,
  preview,
  changing("pause"),
  changing("resume"),
  changing("delete"),
  fires,
  refused,
  replay,
  cancel,
  queue,
  accountWhy,
];
