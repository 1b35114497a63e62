import { describe, expect, it } from "vitest";
import {
  type Typed,
  typedOf,
  wishOf,
  wishOfTrigger,
  withSlug,
} from "../../../dashboard/automations/typed.ts";
import type { Wish } from "../../../dashboard/automations/changes.ts";
import type { Trigger } from "../../../dashboard/automations/deliveries.ts";
import { triggerTemplates } from "../../../src/domain/trigger/templates.ts";

const again = (wish: Wish): Wish => wishOf(wish.type, typedOf(wish));

describe("the form of a trigger", () => {
  it("holds each template as it is", () => {
    for (const { wish } of triggerTemplates("main"))
      expect(again(wish)).toEqual(wish.type === "cron" ? { ...wish, timezone: expect.any(String) } : wish);
  });

  it("holds what a trigger of the manifest says, without what is only a default", () => {
    const trigger = {
      slug: "on-push",
      name: "on-push",
      type: "webhook",
      agent: "default",
      enabled: false,
      prompt: " x\n",
      secret_env: "S",
      filter: { events: ["push"], branches: null, if: { "body.a": "= b", "body.n": 1, "body.t": "true" } },
    } as unknown as Trigger;
    const wish = wishOfTrigger(trigger);
    expect(wish).toEqual({
      type: "webhook",
      slug: "on-push",
      prompt: " x\n",
      enabled: false,
      secret_env: "S",
      events: ["push"],
      if: { "body.a": "= b", "body.n": 1, "body.t": "true" },
    });
    expect({ ...again(wish), enabled: false }).toEqual(wish);
  });

  it("gives a webhook a secret of its own by its slug, until a person names another one", () => {
    const [triage] = triggerTemplates("main");
    const typed = typedOf(triage?.wish ?? { type: "webhook" });
    expect(typed.secret_env).toBe("WEBHOOK_SECRET_TRIAGE_ISSUE");
    expect(withSlug(typed, "triage-2")).toEqual({ slug: "triage-2", secret_env: "WEBHOOK_SECRET_TRIAGE_2" });
    expect(withSlug(typedOf({ type: "webhook" }), "a")).toEqual({
      slug: "a",
      secret_env: "WEBHOOK_SECRET_A",
    });
    expect(withSlug({ ...typed, secret_env: "OURS" }, "b")).toEqual({ slug: "b" });
  });

  it("reads lists with commas, and conditions a line each", () => {
    const typed: Typed = {
      ...typedOf({ type: "webhook" }),
      events: "push, , create",
      branches: " ",
      if: "body.a = opened\n\nbody.draft=false",
    };
    expect(wishOf("webhook", typed)).toMatchObject({
      events: ["push", "create"],
      if: { "body.a": "opened", "body.draft": false },
    });
    expect(wishOf("webhook", typed).branches).toBeUndefined();
  });

  it("begins with a time of each day, and keeps a schedule that cannot be picked", () => {
    expect(wishOf("cron", typedOf({ type: "cron" })).cron).toBe("0 0 9 * * *");
    const odd = typedOf({ type: "cron", cron: "0 0 9,17 * * *" });
    expect([odd.every, wishOf("cron", odd).cron]).toEqual(["cron", "0 0 9,17 * * *"]);
    expect(wishOf("cron", { ...odd, every: "week", weekdays: "5,1,3", time: "07:05" }).cron).toBe(
      "0 5 7 * * 1,3,5",
    );
  });
});
