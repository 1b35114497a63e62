/**
 * `platform webhooks`: outbound webhooks, the receivers of a project's events. A chat's address is a secret, so it comes from a
 * file: every program on the machine can see arguments.
 */
import type { Answer } from "../../cli/contract.ts";
import { choices, endpoint } from "../../cli/endpoint.ts";
import { EXIT, Failure } from "../../cli/failure.ts";
import { fields, time, visible, visibleLines } from "../../cli/terminal.ts";

type Webhook = Answer<"GET /v1/projects/:pid/webhooks/:id">;
type Delivery = Answer<"GET /v1/projects/:pid/webhooks/:id/deliveries">["deliveries"][number];

const ADD = "POST /v1/projects/:pid/webhooks";
const events = { value: "EVENTS", about: "The events that it gets, separated by commas" } as const;

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

export const webhookCommands = [
  endpoint("GET /v1/projects/:pid/webhooks", {
    name: "webhooks list",
    about: "List the receivers of a project's events (outbound webhooks)",
    rows: "webhooks",
    columns: {
      WEBHOOK: "id",
      FORMAT: "format",
      STATUS: stateOf,
      "LAST DELIVERY": ({ last_delivery: last }) => last && lastOf(last),
      ADDRESS: "url",
    },
    none: "No outbound webhooks.",
  }),
  endpoint(ADD, {
    name: "webhooks add",
    about: "Add a receiver of a project's events",
    takes: ["[URL]"],
    options: {
      events,
      format: { value: "FORMAT", about: `One of ${choices(ADD, "format").join(", ")}` },
      "url-file": {
        value: "FILE",
        about: "Take the address from a file, because a chat's address is a secret",
        sets: "url",
        from: "line",
      },
      "secret-file": {
        value: "FILE",
        about: "Take the signing secret from a file; without it, one is made",
        sets: "secret",
        from: "line",
      },
    },
    notes: `Events: ${choices(ADD, "events").join(", ")}.`,
    shows: (webhook) => {
      const { secret } = webhook;
      const below = secret === null ? [] : [`The signing secret, shown only now: ${visible(secret)}`];
      return [shown(webhook), ...below].join("\n");
    },
  }),
  endpoint("GET /v1/projects/:pid/webhooks/:id", {
    name: "webhooks show",
    about: "Show an outbound webhook",
    takes: ["WEBHOOK"],
    shows: shown,
  }),
  endpoint("PATCH /v1/projects/:pid/webhooks/:id", {
    name: "webhooks change",
    about: "Change an outbound webhook's address or events, or enable or disable it",
    takes: ["WEBHOOK"],
    options: {
      events,
      "url-file": { value: "FILE", about: "Take another address from a file", sets: "url", from: "line" },
      enable: { about: "Send events from now on", sets: "status", to: "enabled" },
      disable: {
        about: "Send nothing, and cancel the deliveries that wait",
        sets: "status",
        to: "disabled",
      },
    },
    shows: shown,
  }),
  endpoint("POST /v1/projects/:pid/webhooks/:id/test", {
    name: "webhooks test",
    about: "Send a test to an outbound webhook, and show the answer",
    takes: ["WEBHOOK"],
    notes: "Ends with 1 if the receiver does not accept it.",
    shows: ({ status, error, answer, took_ms: ms }) => {
      const said = status === null ? (error ?? "") : `answered ${status}`;
      return [`${visible(said)} after ${ms} ms`, ...(answer === "" ? [] : [visibleLines(answer)])].join("\n");
    },
    fails: ({ delivered }) =>
      delivered
        ? null
        : new Failure(EXIT.refused, "not_delivered", { message: "The receiver did not accept the test." }),
  }),
  endpoint("POST /v1/projects/:pid/webhooks/:id/rotate", {
    name: "webhooks rotate",
    about: "Replace an outbound webhook's signing secret; the former one signs as well for 24 hours",
    takes: ["WEBHOOK"],
    shows: ({ secret, previous_valid_until: until }) =>
      `The signing secret, shown only now: ${visible(secret)}\nThe former one signs as well until ${time(until)}.`,
  }),
  endpoint("GET /v1/projects/:pid/webhooks/:id/deliveries", {
    name: "webhooks deliveries",
    about: "List what an outbound webhook was sent, with the last answers",
    takes: ["WEBHOOK"],
    rows: "deliveries",
    columns: {
      DELIVERY: "id",
      EVENT: "type",
      RESULT: lastOf,
      TRIES: "tries",
      CREATED: "created_at",
      "NEXT TRY": "next_try_at",
    },
    none: "No deliveries.",
  }),
  endpoint("POST /v1/projects/:pid/webhooks/:id/deliveries/:did/replay", {
    name: "webhooks replay",
    about: "Send a delivery again, under the same webhook-id",
    takes: ["WEBHOOK", "DELIVERY"],
    done: "is sent again",
  }),
  endpoint("DELETE /v1/projects/:pid/webhooks/:id", {
    name: "webhooks delete",
    about: "Delete an outbound webhook with its deliveries",
    asks: "Delete the webhook with its deliveries?",
    takes: ["WEBHOOK"],
    done: "deleted",
  }),
];
