/** What the page tells senders: read without a browser. The real service takes it in workbench.real.test.ts. */
import * as Result from "effect/Result";
import { describe, expect, it } from "vitest";
import {
  curlLines,
  eventsOf,
  gitlabLines,
  type Receiver,
  sampleDelivery,
} from "../../../dashboard/automations/deliveries.ts";
import { templateTokens } from "../../../src/domain/trigger/placeholders.ts";
import { type JsonObject, renderPrompt } from "../../../src/domain/trigger/prompt.ts";
import { triggerTemplates } from "../../../src/domain/trigger/templates.ts";

const receiver = (filter?: Partial<Receiver["filter"]>, prompt = "Look."): Receiver => ({
  prompt,
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

  it("has what the prompt reads, and the filter's values where both name a field", () => {
    const prompt =
      "{{ body.issue }} {{ body.issue.number }} {{ body.issue.title }} {{ body.head_sha }} {{ body.action }} {{ fired_at }} {{ body }}";
    expect(sampleDelivery(receiver({ events: ["issues.opened"] }, prompt))).toEqual({
      event: "issues",
      body: {
        action: "opened",
        issue: { number: 1, title: "A sample title" },
        head_sha: "0123456789abcdef0123456789abcdef01234567",
      },
    });
  });

  it.each(triggerTemplates("main").filter(({ wish }) => wish.type === "webhook"))(
    "fills every place of the template $title",
    ({ wish }) => {
      const { events = null, branches = null, if: conditions = null, prompt = "" } = wish;
      const { body } = sampleDelivery(receiver({ events, branches, if: conditions }, prompt));
      const missing = templateTokens(prompt).filter(
        (token) => Result.getOrThrow(renderPrompt(`{{ ${token} }}`, { body: body as JsonObject })) === "",
      );
      expect(templateTokens(prompt).length).toBeGreaterThan(2);
      expect(missing).toEqual([]);
    },
  );

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
