/** Rows of commands about own subscriptions. */
import { expectStatus } from "../support/service/requests.ts";
import { notFound, type Row, type World } from "./row.ts";

const content = "sk-ant-oat01-of-a-row";

/** The rows, by command; `world` exists when they are called. */
export const subscriptionRowsOf = (world: World): Readonly<Record<string, Row>> => {
  const saved = async (): Promise<string> => {
    const target = "/v1/me/subscriptions/claude-code";
    expectStatus(await world.service.request("PUT", target, { body: { content } }), 200);
    return "claude-code";
  };
  return {
    "subscriptions list": {
      args: async () => (await saved(), []),
      human: /^RUNTIME +SUBSCRIPTION +SAVED +RENEWED +USED\nclaude-code +Claude subscription +20\S+/,
      json: "/v1/me/subscriptions",
      refused: [["x"], 2, /./],
    },
    "subscriptions save": {
      args: () => ["claude-code"],
      input: `${content}\n`,
      human: /^runtime +claude-code\nsubscription +Claude subscription\nsaved +20\S+.*\n$/,
      json: { runtime: "claude-code", renewed_at: null, used_at: null },
      refused: [["opencode"], 4, notFound("Runtime with a subscription")],
    },
    "subscriptions remove": {
      args: async () => [await saved(), "--yes"],
      human: /^claude-code removed\n$/,
      json: {},
      refused: [["nothing", "--yes"], 4, notFound("Subscription")],
    },
  };
};
