/** Examples of the operations on outbound webhooks and on people's own notices (operations.ts). */
import type { Examples } from "../../http/api/examples/example.ts";
import { LATER, PROJECT, SESSION } from "../../http/api/examples/records.ts";

const events = ["session.waiting", "session.failed"];
const secret = "whsec_c2VjcmV0IG9mIGFuIGV4YW1wbGUgd2l0aCAzMiBieXQ=";

const notices = {
  mail: {
    status: "enabled",
    last_delivery: { last_try: { status: 250, answer: "250 2.0.0 Ok" } },
    address: "ada@example.com",
  },
  chat: {
    status: "enabled",
    tells: ["asked", "finished"],
    format: "slack",
    url: "https://hooks.slack.com/…XXXX",
  },
};

export const OUTBOUND_EXAMPLES: Examples = {
  nouns: {
    webhook: {
      url: "https://receiver.example.org/platform",
      events,
      last_delivery: {},
    },
    delivery: {
      event_id: "evt_5d1f7c0a9e3b84828f60c8d1b2a39e4f",
      type: "session.waiting",
      status: "delivered",
      tries: 2,
      last_try: { status: 204, answer: "", took_ms: 84 },
      data: {
        project_id: PROJECT,
        project_name: "greeter",
        session_id: SESSION,
        request_id: "019a7c46-72d9-7b3e-9d2c-5f60718293a4",
        url: `https://platform.example.org/#/projects/${PROJECT}/sessions/${SESSION}`,
      },
      ended_at: LATER,
    },
  },
  operations: {
    "outboundWebhooks.list":
      "List the receivers of a project's events, newest first, with the last delivery of each.",
    "outboundWebhooks.create": {
      summary:
        "Add a receiver of the project's events. The answer has its signing secret, which is not shown again.",
      request: { url: "https://receiver.example.org/platform", events },
      response: { last_delivery: null, secret },
    },
    "outboundWebhooks.get": "Show a receiver of the project's events.",
    "outboundWebhooks.change": {
      summary: "Change a receiver's address or events, or enable or disable it.",
      request: { status: "disabled" },
      response: { disabled_reason: "requested" },
    },
    "outboundWebhooks.delete": "Delete a receiver with its deliveries.",
    "outboundWebhooks.test": {
      summary: "Send a receiver a test now, and show its answer.",
      response: { delivered: true, status: 204, answer: "", took_ms: 84 },
    },
    "outboundWebhooks.rotate": {
      summary: "Replace a receiver's signing secret. The former one signs as well for 24 hours.",
      response: { secret },
    },
    "outboundWebhooks.deliveries": "List what a receiver was sent, newest first, with its last answers.",
    "outboundWebhooks.replay": {
      summary: "Send a delivery again, under the same webhook-id.",
      response: { status: "pending", tries: 0, next_try_at: LATER, ended_at: null },
    },
    "ownNotices.get": { summary: "Get your notices by mail and in your own chat.", response: notices },
    "ownNotices.setMail": {
      summary: "Choose what you are told by mail, at your verified address.",
      response: notices,
    },
    "ownNotices.setChat": {
      summary:
        "Choose what you are told in your own chat, by an incoming webhook. Without an address, the chat stays the same.",
      request: {
        tells: ["asked", "finished"],
        format: "slack",
        url: "https://hooks.slack.com/services/T000/B000/XXXX",
      },
      response: notices,
    },
    "ownNotices.remove": "Turn your notices by mail or in your own chat off.",
    "ownNotices.test": {
      summary: "Send yourself one test, and get its outcome.",
      response: { delivered: true, status: 250, answer: "250 2.0.0 Ok", took_ms: 84 },
    },
  },
};
