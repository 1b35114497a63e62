/**
 * `platform webhooks`: outbound webhooks, the receivers of a project's events. `platform notices`: a person's notices of her own
 * sessions, by mail and in her chat. A chat's address is a secret, so it comes from a file: every program on the machine can
 * see arguments.
 */
import type { Answer } from "../../cli/contract.ts";
import { choices, endpoint } from "../../cli/endpoint/endpoint.ts";
import { EXIT, Failure, usageFailure } from "../../cli/failure.ts";
import { fieldLines, table, time, safeLine, safeLines } from "../../cli/terminal.ts";

type Webhook = Answer<"GET /v1/projects/:pid/webhooks/:id">;
type Delivery = Answer<"GET /v1/projects/:pid/webhooks/:id/deliveries">["deliveries"][number];

const ADD = "POST /v1/projects/:pid/webhooks";
const events = { value: "EVENTS", about: "The events that it gets, separated by commas" } as const;

const lastTryText = ({ last_try: last, status }: Pick<Delivery, "last_try" | "status">): string => {
  if (last === null) return status;
  return last.status === null ? (last.error ?? "no answer") : `${status} (${last.status})`;
};

const webhookState = ({ status, disabled_reason: reason, warning }: Webhook): string => {
  if (status === "disabled") return `disabled: ${reason ?? ""}`;
  return warning === null ? "enabled" : "failing";
};

const webhookText = (webhook: Webhook): string =>
  [
    fieldLines([
      ["webhook", webhook.id],
      ["address", safeLine(webhook.url)],
      ["format", webhook.format],
      ["events", webhook.events.join(", ")],
      ["status", webhookState(webhook)],
      ["failing since", webhook.failing_since && time(webhook.failing_since)],
      [
        "former secret",
        webhook.previous_secret_valid_until && `signs until ${time(webhook.previous_secret_valid_until)}`,
      ],
      ["last delivery", webhook.last_delivery && safeLine(lastTryText(webhook.last_delivery))],
    ]),
    ...(webhook.warning === null ? [] : [safeLine(webhook.warning)]),
  ].join("\n");

type Tested = Pick<Answer<"POST /v1/me/notices/:place/test">, "status" | "error" | "answer" | "took_ms">;

const testText = ({ status, error, answer, took_ms: ms }: Tested): string => {
  const result = error ?? (status === null ? "" : `answered ${status}`);
  return [`${safeLine(result)} after ${ms} ms`, ...(answer === "" ? [] : [safeLines(answer)])].join("\n");
};

const notDelivered = (message: string) => new Failure(EXIT.refused, "not_delivered", { message });

export const webhookCommands = [
  endpoint("GET /v1/projects/:pid/webhooks", {
    name: "webhooks list",
    about: "List the receivers of a project's events (outbound webhooks)",
    rows: "webhooks",
    columns: {
      WEBHOOK: "id",
      FORMAT: "format",
      STATUS: webhookState,
      "LAST DELIVERY": ({ last_delivery: last }) => last && lastTryText(last),
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
      const below = secret === null ? [] : [`The signing secret, shown only now: ${safeLine(secret)}`];
      return [webhookText(webhook), ...below].join("\n");
    },
  }),
  endpoint("GET /v1/projects/:pid/webhooks/:id", {
    name: "webhooks show",
    about: "Show an outbound webhook",
    takes: ["WEBHOOK"],
    shows: webhookText,
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
    shows: webhookText,
  }),
  endpoint("POST /v1/projects/:pid/webhooks/:id/test", {
    name: "webhooks test",
    about: "Send a test to an outbound webhook, and show the answer",
    takes: ["WEBHOOK"],
    notes: "Ends with 1 if the receiver does not accept it.",
    shows: testText,
    fails: ({ delivered }) => (delivered ? null : notDelivered("The receiver did not accept the test.")),
  }),
  endpoint("POST /v1/projects/:pid/webhooks/:id/rotate", {
    name: "webhooks rotate",
    about: "Replace an outbound webhook's signing secret; the former one signs as well for 24 hours",
    takes: ["WEBHOOK"],
    shows: ({ secret, previous_valid_until: until }) =>
      `The signing secret, shown only now: ${safeLine(secret)}\nThe former one signs as well until ${time(until)}.`,
  }),
  endpoint("GET /v1/projects/:pid/webhooks/:id/deliveries", {
    name: "webhooks deliveries",
    about: "List what an outbound webhook was sent, with the last answers",
    takes: ["WEBHOOK"],
    rows: "deliveries",
    columns: {
      DELIVERY: "id",
      EVENT: "type",
      RESULT: lastTryText,
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

type Notices = Answer<"GET /v1/me/notices">;

const CHAT = "PUT /v1/me/notices/chat";
const KINDS = choices(CHAT, "tells");
const tells = {
  value: "KINDS",
  about: `The notices: ${KINDS.join(",")}, or one of them. Without it, both`,
} as const;

const BOTH = { payload: { tells: ["asked", "finished"] as const } };
const otherwiseBoth = (options: { readonly tells: string | undefined }) =>
  options.tells === undefined ? BOTH : {};

const NO_MAIL = {
  not_set_up: "no: this service sends no mail",
  no_address: "no: no sign-in of yours has a verified address",
} as const;

const noticesText = ({ mail, chat }: Notices): string => {
  const row = (place: Notices["mail"] | Notices["chat"], where: string | null) => [
    place.status === "disabled" ? `disabled: ${place.disabled_reason ?? ""}` : place.status,
    place.tells.join(", ") || "-",
    place.last_delivery === null ? "-" : safeLine(lastTryText(place.last_delivery)),
    safeLine(where ?? "-"),
  ];
  const mailbox = mail.unavailable === null ? mail.address : NO_MAIL[mail.unavailable];
  const address = chat.url === null ? null : `${chat.url} (${chat.format ?? ""})`;
  const rows = [
    ["mail", ...row(mail, mailbox)],
    ["chat", ...row(chat, address)],
  ];
  return table(["PLACE", "STATUS", "TELLS", "LAST", "ADDRESS"], rows, "");
};

export const noticeCommands = [
  endpoint("GET /v1/me/notices", {
    name: "notices show",
    about: "Show your notices by mail and in your own chat",
    shows: noticesText,
  }),
  endpoint("PUT /v1/me/notices/mail", {
    name: "notices mail",
    about: "Get notices about your sessions by mail, at your verified address",
    options: { tells },
    notes:
      "`asked`: an agent asks you, or a person asks for your review. `finished`: an agent has finished or failed.",
    sends: ({ options }) => otherwiseBoth(options),
    shows: noticesText,
  }),
  endpoint(CHAT, {
    name: "notices chat",
    about: "Get notices about your sessions in your own chat, by its incoming webhook",
    options: {
      tells,
      format: { value: "FORMAT", about: `One of ${choices(CHAT, "format").join(", ")}` },
      "url-file": {
        value: "FILE",
        about: "Take the webhook's address from a file, because it is a secret",
        sets: "url",
        from: "line",
      },
    },
    notes: "Without --url-file, the chat stays the same.",
    sends: ({ options }) => {
      if ((options["url-file"] === undefined) !== (options.format === undefined))
        throw usageFailure("Give --format and --url-file together.");
      return otherwiseBoth(options);
    },
    shows: noticesText,
  }),
  endpoint("DELETE /v1/me/notices/:place", {
    name: "notices off",
    about: "Turn notices by mail or in your chat off",
    takes: ["PLACE"],
    done: "is off",
  }),
  endpoint("POST /v1/me/notices/:place/test", {
    name: "notices test",
    about: "Send yourself one test by mail or in your chat, and show what came of it",
    takes: ["PLACE"],
    shows: testText,
    fails: ({ delivered }) => (delivered ? null : notDelivered("The test did not arrive.")),
  }),
];
