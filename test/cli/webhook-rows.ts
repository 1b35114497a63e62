/** The rows of `platform webhooks` (rows.ts). */
import { expect } from "vitest";
import type { Row, World } from "./row.ts";

const ID = "[0-9a-f-]{36}";
/** The id of nothing. */
const NOWHERE = "0190f3b2-0000-7000-8000-00000000dead";
const NOT_FOUND = /^Webhook not found\.\n$/;

export const webhookRowsOf = (world: World): Readonly<Record<string, Row>> => ({
  "webhooks list": {
    args: async () => (await world.outboundWebhook(), ["--limit", "1"]),
    human: new RegExp(
      `^WEBHOOK +FORMAT +STATUS +LAST DELIVERY +ADDRESS\n${ID} +standard +enabled +- +https://receiver\\.example\\.org/\n$`,
    ),
    json: "/webhooks?limit=1",
    refused: [["--limit", "201"], 1, /^`limit` must be between 1 and 200\.\n/],
  },
  "webhooks add": {
    args: () => ["https://receiver.example.org/", "--events", "queue.full,session.failed"],
    human:
      /\nevents +queue\.full, session\.failed\n[^]*\nThe signing secret, shown only now: whsec_\S{44}\n$/,
    json: { url: "https://receiver.example.org/", events: ["queue.full", "session.failed"] },
    refused: [["http://10.0.0.1/", "--events", "queue.full"], 1, /PLATFORM_WEBHOOK_ALLOW_HOSTS/],
  },
  "webhooks show": {
    args: async () => [await world.outboundWebhook()],
    human: new RegExp(`^webhook +${ID}\naddress +https://receiver\\.example\\.org/\nformat +standard\n`),
    json: ([id = ""]) => `/webhooks/${id}`,
    refused: [[NOWHERE], 4, NOT_FOUND],
  },
  "webhooks change": {
    args: async () => [await world.outboundWebhook(), "--disable"],
    human: /\nstatus +disabled: requested\n/,
    json: { status: "disabled", disabled_reason: "requested" },
    refused: [[NOWHERE, "--enable", "--disable"], 2, /^Give --enable or --disable, not both\.\n/],
  },
  "webhooks test": {
    args: async () => (await world.outboundDelivery()).slice(0, 1),
    human: /^answered 204 after \d+ ms\n$/,
    json: { delivered: true, status: 204 },
    refused: [[NOWHERE], 4, NOT_FOUND],
  },
  "webhooks rotate": {
    args: async () => [await world.outboundWebhook()],
    human: /^The signing secret, shown only now: whsec_\S{44}\nThe former one signs as well until .*Z\.\n$/,
    json: { secret: expect.stringMatching(/^whsec_/) as string },
    refused: [[NOWHERE], 4, NOT_FOUND],
  },
  "webhooks deliveries": {
    args: async () => (await world.outboundDelivery()).slice(0, 1),
    human: new RegExp(
      `^DELIVERY +EVENT +RESULT +TRIES +CREATED +NEXT TRY\n${ID} +session\\.stopped +pending \\(500\\) +1 `,
    ),
    json: ([id = ""]) => `/webhooks/${id}/deliveries`,
    refused: [[NOWHERE], 4, NOT_FOUND],
  },
  "webhooks replay": {
    args: async () => await world.outboundDelivery(),
    human: new RegExp(`^${ID} is sent again\n$`),
    json: { type: "session.stopped", status: "pending" },
    refused: [[NOWHERE, NOWHERE], 4, NOT_FOUND],
  },
  "webhooks delete": {
    args: async () => [await world.outboundWebhook()],
    human: new RegExp(`^${ID} deleted\n$`),
    json: {},
    refused: [[NOWHERE], 4, NOT_FOUND],
  },
});
