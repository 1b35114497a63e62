/**
 * `platform webhooks`: outbound webhooks, the receivers of a project's events. A chat's address is a secret, so it comes from a
 * file: every program on the machine can see arguments.
 */
import type { OutboundEvent } from "./rules/outbound-event.ts";
import type { Answer } from "../../cli/contract.ts";
import { command } from "../../cli/command.ts";
import { EXIT, Failure, usage } from "../../cli/failure.ts";
import { fields, table, time, timeOrDash, visible, visibleLines } from "../../cli/terminal.ts";
import { anyId, oneOf } from "../../cli/words.ts";
import { page, pageOptions, pageOutcome } from "../../cli/commands/lists.ts";

type Webhook = Answer<"GET /v1/projects/:pid/webhooks/:id">;
type Delivery = Answer<"GET /v1/projects/:pid/webhooks/:id/deliveries">["deliveries"][number];

const WEBHOOK = "WEBHOOK";
const DELIVERY = "DELIVERY";
const FORMATS = ["standard", "slack", "discord"] as const;
/** The compiler asks for each event of the service. The command line imports only types of the service. */
const EVENTS = Object.keys({
  "session.waiting": true,
  "session.turn_ended": true,
  "approval.waiting": true,
  "session.work_unsaved": true,
  "session.stopped": true,
  "session.failed": true,
  "change_request.opened": true,
  "change_request.review_requested": true,
  "change_request.merged": true,
  "change_request.closed": true,
  "fire.failed": true,
  "fire.expired": true,
  "queue.full": true,
  "manifest.stale": true,
  "webhook.disabled": true,
} satisfies Readonly<Record<OutboundEvent, true>>) as readonly OutboundEvent[];

const eventsOf = (text: string): readonly OutboundEvent[] =>
  text
    .split(",")
    .map((word) => oneOf(word.trim(), EVENTS, "Each of --events"))
    .filter((event) => event !== undefined);

const lastOf = ({ last_try: last, status }: Pick<Delivery, "last_try" | "status">): string => {
  if (last === null) return status;
  return last.status === null ? (last.error ?? "no answer") : `${status} (${last.status})`;
};

const stateOf = ({ status, disabled_reason: reason, warning }: Webhook): string => {
  if (status === "disabled") return `disabled: ${reason ?? ""}`;
  return warning === null ? "enabled" : "failing";
};

const shown = (webhook: Webhook): string =>
  [
    fields([
      ["webhook", webhook.id],
      ["address", visible(webhook.url)],
      ["format", webhook.format],
      ["events", webhook.events.join(", ")],
      ["status", stateOf(webhook)],
      ["failing since", webhook.failing_since && time(webhook.failing_since)],
      [
        "former secret",
        webhook.previous_secret_valid_until && `signs until ${time(webhook.previous_secret_valid_until)}`,
      ],
      ["last delivery", webhook.last_delivery && visible(lastOf(webhook.last_delivery))],
    ]),
    ...(webhook.warning === null ? [] : [visible(webhook.warning)]),
  ].join("\n");

const list = command({
  name: "webhooks list",
  about: "List the receivers of a project's events (outbound webhooks)",
  inProject: true,
  options: pageOptions,
  run: async ({ options, note, api, project }) => {
    const answer = await api().call("GET /v1/projects/:pid/webhooks", {
      params: { pid: await project() },
      query: page(options),
    });
    const rows = answer.value.webhooks.map((webhook) => [
      webhook.id,
      webhook.format,
      stateOf(webhook),
      webhook.last_delivery === null ? "-" : visible(lastOf(webhook.last_delivery)),
      visible(webhook.url),
    ]);
    const columns = ["WEBHOOK", "FORMAT", "STATUS", "LAST DELIVERY", "ADDRESS"];
    return pageOutcome(answer, table(columns, rows, "No outbound webhooks."), note);
  },
});

const add = command({
  name: "webhooks add",
  about: "Add a receiver of a project's events",
  takes: ["[URL]"],
  inProject: true,
  options: {
    events: { value: "EVENTS", about: "The events that it gets, separated by commas" },
    format: { value: "FORMAT", about: `One of ${FORMATS.join(", ")}` },
    "url-file": {
      value: "FILE",
      about: "Take the address from a file, because a chat's address is a secret",
    },
    "secret-file": { value: "FILE", about: "Take the signing secret from a file; without it, one is made" },
  },
  notes: `Events: ${EVENTS.join(", ")}.`,
  run: async ({ given, options, input, api, project }) => {
    const file = options["url-file"];
    const url = file === undefined ? given.URL : (await input.file(file, "--url-file")).trim();
    if (url === undefined || (file !== undefined && given.URL !== undefined))
      throw usage("Give the address, or --url-file FILE.");
    if (options.events === undefined) throw usage("--events must name at least one event.");
    const events = eventsOf(options.events);
    const format = oneOf(options.format, FORMATS, "--format");
    const secretFile = options["secret-file"];
    const secret =
      secretFile === undefined ? undefined : (await input.file(secretFile, "--secret-file")).trim();
    const { value, text } = await api().call("POST /v1/projects/:pid/webhooks", {
      params: { pid: await project() },
      payload: {
        url,
        events,
        ...(format !== undefined && { format }),
        ...(secret !== undefined && { secret }),
      },
    });
    const said =
      value.secret === null ? [] : [`The signing secret, shown only now: ${visible(value.secret)}`];
    return { json: text, text: [shown(value), ...said].join("\n") };
  },
});

const show = command({
  name: "webhooks show",
  about: "Show an outbound webhook",
  takes: [WEBHOOK],
  inProject: true,
  run: async ({ given, api, project }) => {
    const id = anyId(given.WEBHOOK, WEBHOOK);
    const { value, text } = await api().call("GET /v1/projects/:pid/webhooks/:id", {
      params: { pid: await project(), id },
    });
    return { json: text, text: shown(value) };
  },
});

const change = command({
  name: "webhooks change",
  about: "Change an outbound webhook's address or events, or enable or disable it",
  takes: [WEBHOOK],
  inProject: true,
  options: {
    events: { value: "EVENTS", about: "The events that it gets, separated by commas" },
    "url-file": { value: "FILE", about: "Take another address from a file" },
    enable: { about: "Send events from now on" },
    disable: { about: "Send nothing, and cancel the deliveries that wait" },
  },
  run: async ({ given, options, input, api, project }) => {
    const id = anyId(given.WEBHOOK, WEBHOOK);
    if (options.enable && options.disable) throw usage("Give --enable or --disable, not both.");
    const file = options["url-file"];
    const payload = {
      ...(options.events !== undefined && { events: eventsOf(options.events) }),
      ...(file !== undefined && { url: (await input.file(file, "--url-file")).trim() }),
      ...(options.enable && { status: "enabled" as const }),
      ...(options.disable && { status: "disabled" as const }),
    };
    if (Object.keys(payload).length === 0) throw usage("Say what to change.");
    const { value, text } = await api().call("PATCH /v1/projects/:pid/webhooks/:id", {
      params: { pid: await project(), id },
      payload,
    });
    return { json: text, text: shown(value) };
  },
});

const remove = command({
  name: "webhooks delete",
  about: "Delete an outbound webhook with its deliveries",
  asks: "Delete the webhook with its deliveries?",
  takes: [WEBHOOK],
  inProject: true,
  run: async ({ given, api, project }) => {
    const id = anyId(given.WEBHOOK, WEBHOOK);
    const { text } = await api().call("DELETE /v1/projects/:pid/webhooks/:id", {
      params: { pid: await project(), id },
    });
    return { json: text, text: `${id} deleted` };
  },
});

const test = command({
  name: "webhooks test",
  about: "Send a test to an outbound webhook, and show the answer",
  takes: [WEBHOOK],
  inProject: true,
  notes: "Ends with 1 if the receiver does not accept it.",
  run: async ({ given, api, project, json, write }) => {
    const id = anyId(given.WEBHOOK, WEBHOOK);
    const { value, text } = await api().call("POST /v1/projects/:pid/webhooks/:id/test", {
      params: { pid: await project(), id },
    });
    const answer = value.answer === "" ? [] : [visibleLines(value.answer)];
    const said = value.status === null ? (value.error ?? "") : `answered ${value.status}`;
    const all = [`${visible(said)} after ${value.took_ms} ms`, ...answer].join("\n");
    if (value.delivered) return { json: text, text: all };
    write(`${json ? text : all}\n`);
    throw new Failure(EXIT.refused, "not_delivered", { message: "The receiver did not accept the test." });
  },
});

const rotate = command({
  name: "webhooks rotate",
  about: "Replace an outbound webhook's signing secret; the former one signs as well for 24 hours",
  takes: [WEBHOOK],
  inProject: true,
  run: async ({ given, api, project }) => {
    const id = anyId(given.WEBHOOK, WEBHOOK);
    const { value, text } = await api().call("POST /v1/projects/:pid/webhooks/:id/rotate", {
      params: { pid: await project(), id },
      payload: {},
    });
    const until = time(value.previous_valid_until);
    return {
      json: text,
      text: `The signing secret, shown only now: ${visible(value.secret)}\nThe former one signs as well until ${until}.`,
    };
  },
});

const deliveries = command({
  name: "webhooks deliveries",
  about: "List what an outbound webhook was sent, with the last answers",
  takes: [WEBHOOK],
  inProject: true,
  options: pageOptions,
  run: async ({ given, options, note, api, project }) => {
    const id = anyId(given.WEBHOOK, WEBHOOK);
    const answer = await api().call("GET /v1/projects/:pid/webhooks/:id/deliveries", {
      params: { pid: await project(), id },
      query: page(options),
    });
    const rows = answer.value.deliveries.map((delivery) => [
      delivery.id,
      delivery.type,
      visible(lastOf(delivery)),
      String(delivery.tries),
      time(delivery.created_at),
      timeOrDash(delivery.next_try_at),
    ]);
    const columns = ["DELIVERY", "EVENT", "RESULT", "TRIES", "CREATED", "NEXT TRY"];
    return pageOutcome(answer, table(columns, rows, "No deliveries."), note);
  },
});

const replay = command({
  name: "webhooks replay",
  about: "Send a delivery again, under the same webhook-id",
  takes: [WEBHOOK, DELIVERY],
  inProject: true,
  run: async ({ given, api, project }) => {
    const [id, did] = [anyId(given.WEBHOOK, WEBHOOK), anyId(given.DELIVERY, DELIVERY)];
    const { text } = await api().call("POST /v1/projects/:pid/webhooks/:id/deliveries/:did/replay", {
      params: { pid: await project(), id, did },
    });
    return { json: text, text: `${did} is sent again` };
  },
});

export const webhookCommands = [list, add, show, change, test, rotate, deliveries, replay, remove];
