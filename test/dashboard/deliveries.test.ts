/** What the page tells senders: read without a browser. The real service takes it in workbench.real.test.ts. */
import { describe, expect, it } from "vitest";
import {
  curlLines,
  eventsOf,
  gitlabLines,
  type Receiver,
  sampleDelivery,
} from "../../dashboard/automations/deliveries.ts";

const receiver = (filter?: Partial<Receiver["filter"]>): Receiver => ({
  slug: "on-push",
  secret: "HOOK_SECRET",
  url: "https://agents.example.org/v1/webhooks/projects/p/on-push",
  filter: filter === undefined ? null : { events: null, branches: null, if: null, ...filter },
});

describe("a sample delivery", () => {
  it("passes the trigger's filter", () => {
    expect(sampleDelivery(receiver())).toEqual({ event: "push", body: { ref: "refs/heads/main" } });
    expect(
      sampleDelivery(
        receiver({
          events: ["pull_request.opened", "pull_request.reopened", "push"],
          branches: ["release/*"],
          if: { "body.pull_request.draft": false, "body.sender.type": "User", "headers.user_agent": "x" },
        }),
      ),
    ).toEqual({
      event: "pull_request",
      body: {
        action: "opened",
        pull_request: { base: { ref: "release/x" }, draft: false },
        sender: { type: "User" },
      },
    });
    expect(eventsOf(receiver({ events: ["pull_request.opened", "pull_request.closed", "push"] }))).toEqual([
      "pull_request",
      "push",
    ]);
  });

  it("does not change what all objects have, whatever the filter names", () => {
    sampleDelivery(receiver({ if: { "body.__proto__.polluted": true, "body.a.__proto__.polluted": true } }));
    expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false);
  });

  it("stays one word of a shell, whatever the filter holds", () => {
    const hostile = `it's $(touch owned)`;
    const lines = curlLines(receiver({ events: [hostile], branches: [hostile], if: { "body.x": "a'b" } }));
    expect(lines).toContain(String.raw`it'\''s $(touch owned)`);
    expect(lines).toContain(String.raw`"x":"a'\''b"`);
    expect(lines.replaceAll(/'(?:[^']|'\\'')*'/g, "")).not.toContain("owned");
  });

  it("is signed in a job of GitLab by the secret's variable", () => {
    expect(gitlabLines(receiver())).toContain(`-hmac "$HOOK_SECRET"`);
  });
});
