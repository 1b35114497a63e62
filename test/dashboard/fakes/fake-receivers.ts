/** The fake's outbound webhooks: the receivers of its project's events, and what one of them was sent. */
import { randomUUID } from "node:crypto";

type Json = Readonly<Record<string, unknown>>;

export interface FakeReceivers {
  receivers: Json[];
  deliveries: Json[];
  /** What each test finds. */
  tested: Json;
}

type Answer = Json | null | undefined;

export const RECEIVER_ID = "01995f2c-1e5b-7b0e-8a44-b7d15c2a9e01";
export const NEW_SECRET = "whsec_c2hvd24gb25jZQ==";

const change = (world: FakeReceivers, id: string, rest: Json): Answer => {
  world.receivers = world.receivers.map((one) => (one["id"] === id ? { ...one, ...rest } : one));
  return world.receivers.find((one) => one["id"] === id);
};

const ofReceiver = (
  world: FakeReceivers,
  method: string,
  { id, part, body }: { readonly id: string; readonly part: string | undefined; readonly body: Json },
): Answer => {
  if (part === "test") return world.tested;
  if (part === "rotate") return { secret: NEW_SECRET };
  if (part === "deliveries")
    return method === "POST" ? world.deliveries[0] : { deliveries: world.deliveries, next_cursor: null };
  if (method === "PATCH") return change(world, id, { ...body, disabled_reason: "requested" });
  if (method === "GET") return world.receivers.find((one) => one["id"] === id);
  world.receivers = world.receivers.filter((one) => one["id"] !== id);
  return null;
};

/** @returns undefined also if the request is about something else */
export const receiversAnswer = (world: FakeReceivers, route: string, text: string): Answer => {
  const body = text.startsWith("{") ? (JSON.parse(text) as Json) : {};
  const [method = "", target = ""] = route.split(" ");
  const [, , , , collection, id, part] = target.split("/");
  if (collection !== "webhooks") return undefined;
  if (id !== undefined) return ofReceiver(world, method, { id, part, body });
  if (method === "GET") return { webhooks: world.receivers, next_cursor: null };
  const made = { ...world.receivers[0], ...body, id: randomUUID(), last_delivery: null };
  world.receivers = [made, ...world.receivers];
  return { ...made, secret: body["format"] === "standard" ? NEW_SECRET : null };
};

/** @param now ms since the epoch that the instants stand around */
export const sampleReceivers = (now: number): FakeReceivers => {
  const at = (minutes: number) => new Date(now - minutes * 60_000).toISOString();
  const data = {
    project_id: "p",
    project_name: "greeter",
    session_id: "s",
    url: "https://platform.example/#/",
  };
  const delivery = (id: string, status: string, rest: Json) => ({
    id,
    type: "session.waiting",
    status,
    tries: 1,
    next_try_at: null,
    last_try: { status: 204, error: null, answer: "", took_ms: 84 },
    data,
    created_at: at(12),
    ...rest,
  });
  const timedOut = { status: null, error: "No answer within 15 s.", answer: "", took_ms: 15_000 };
  const broken = { status: 500, error: null, answer: "Internal Server Error", took_ms: 41 };
  const deliveries = [
    delivery("d-1", "delivered", {}),
    delivery("d-2", "pending", { type: "fire.failed", tries: 3, next_try_at: at(-28), last_try: timedOut }),
    delivery("d-3", "failed", {
      type: "change_request.opened",
      tries: 8,
      last_try: broken,
      created_at: at(2000),
    }),
  ];
  const receiver = {
    id: RECEIVER_ID,
    format: "standard",
    url: "https://receiver.example.org/platform",
    events: ["session.waiting", "session.failed", "change_request.opened"],
    status: "enabled",
    disabled_reason: null,
    failing_since: null,
    warning: null,
    previous_secret_valid_until: null,
    last_delivery: deliveries[0],
    created_at: at(9000),
  };
  return {
    receivers: [
      receiver,
      {
        ...receiver,
        id: "01995f2c-1e5b-7b0e-8a44-b7d15c2a9e02",
        format: "slack",
        url: "https://hooks.slack.com/…",
        failing_since: at(1800),
        warning: "Every request has failed since yesterday. After five days the receiver is disabled.",
        last_delivery: deliveries[2],
      },
      {
        ...receiver,
        id: "01995f2c-1e5b-7b0e-8a44-b7d15c2a9e03",
        format: "discord",
        url: "https://discord.com/…",
        status: "disabled",
        disabled_reason: "gone",
        last_delivery: null,
      },
    ],
    deliveries,
    tested: { delivered: true, status: 204, error: null, answer: "", took_ms: 84 },
  };
};
