/** Examples of the operations on own subscriptions (operations.ts). */
import type { Examples } from "../../http/api/examples/example.ts";
import { BEGAN, LATER } from "../../http/api/examples/records.ts";

const content = '{"tokens": {"access_token": "…", "refresh_token": "…"}}';

export const SUBSCRIPTION_EXAMPLES: Examples = {
  nouns: {
    subscription: {
      runtime: "example",
      title: "Example subscription",
      saved_at: BEGAN,
      renewed_at: LATER,
      used_at: LATER,
    },
  },
  operations: {
    "subscriptions.list": {
      summary: "List your own subscriptions, and those that you can save. Their contents are never shown.",
      response: {
        possible: [
          {
            runtime: "example",
            title: "Example subscription",
            how: "example login",
            file: ".example/auth.json",
          },
        ],
      },
    },
    "subscriptions.save": {
      summary:
        "Save your own subscription for a runtime. Only sessions that you start use it, while you alone steer them.",
      request: { content },
      response: { renewed_at: null, used_at: null },
    },
    "subscriptions.remove": "Remove your own subscription. It is taken out of your running sessions.",
    "subscriptions.renew": {
      summary: "Give back the file that the runtime has renewed. For the sandbox alone.",
      request: { content },
    },
  },
};
