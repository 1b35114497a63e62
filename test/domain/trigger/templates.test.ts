/** The templates, with the deliveries that GitHub's documentation has (@octokit/webhooks-examples). */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import * as Result from "effect/Result";
import { describe, expect, it } from "vitest";
import { parseManifest } from "../../../src/domain/manifest/manifest.ts";
import { entryLines, triggerLines } from "../../../src/domain/manifest/trigger-lines.ts";
import {
  cronVariables,
  type JsonObject,
  renderPrompt,
  webhookVariables,
} from "../../../src/domain/trigger/prompt.ts";
import { triggerTemplates, type TriggerTemplate } from "../../../src/domain/trigger/templates.ts";
import type { TriggerDefinition } from "../../../src/domain/trigger/trigger.ts";
import { matchesFilter } from "../../../src/domain/trigger/webhook-filter.ts";
import { webhookEvent } from "../../../src/domain/trigger/webhook-event.ts";

const EVENTS = JSON.parse(
  readFileSync(fileURLToPath(import.meta.resolve("@octokit/webhooks-examples")), "utf8"),
) as readonly { readonly name: string; readonly examples: readonly JsonObject[] }[];

const NOW = Date.UTC(2027, 0, 4, 9);

const definition = ({ wish }: TriggerTemplate): TriggerDefinition => {
  const [trigger] = parseManifest(Buffer.from(entryLines(wish))).triggers;
  return trigger ?? expect.fail("it is no entry of a manifest");
};

/** The recorded deliveries that pass the trigger's filter, as variables. A check of a recorded one did not fail on our branch. */
const deliveries = (trigger: TriggerDefinition): readonly JsonObject[] => {
  if (trigger.type !== "webhook")
    return [
      cronVariables(trigger, {
        schedule: trigger.cron,
        timezone: trigger.timezone,
        dueAtMs: NOW,
        lastFiredAtMs: NOW - 7 * 86_400_000,
      }),
    ];
  return EVENTS.flatMap(({ name, examples }) =>
    examples.flatMap((example) => {
      const run = example["workflow_run"];
      const body =
        typeof run === "object" && run !== null
          ? { ...example, workflow_run: { ...run, conclusion: "failure", head_branch: "main" } }
          : example;
      const variables = webhookVariables(trigger, {
        firedAtMs: NOW,
        body,
        headers: { contentType: undefined, userAgent: undefined, forwardedFor: undefined },
      });
      const event = webhookEvent({ "x-github-event": name }, body);
      return trigger.filter !== undefined && matchesFilter(trigger.filter, event, variables)
        ? [variables]
        : [];
    }),
  );
};

const rendered = (template: string, variables: JsonObject): string =>
  Result.getOrThrow(renderPrompt(template, variables));

describe("each template", () => {
  it.each(triggerTemplates("main").map((template) => [template.id, template] as const))(
    "is an entry of a manifest, and renders a recorded example: %s",
    (_id, template) => {
      expect(Result.isSuccess(triggerLines(template.wish, new Set()))).toBe(true);
      const trigger = definition(template);
      const found = deliveries(trigger);
      expect(found.length).toBeGreaterThan(0);
      const paths = [...`${trigger.prompt}${trigger.title ?? ""}`.matchAll(/\{\{ ([\w.]+) \}\}/g)].map(
        ([, path = ""]) => path,
      );
      // An example may leave something empty. No path leads nowhere in all of them.
      for (const path of paths)
        expect([path, found.map((variables) => rendered(`{{ ${path} }}`, variables)).join("")]).not.toEqual([
          path,
          "",
        ]);
      for (const variables of found) expect(rendered(trigger.prompt, variables)).not.toContain("{{");
      // In Markdown, as conversations show it, a rule directly below a text makes that text a heading.
      expect(trigger.prompt).not.toMatch(/\S\n(?:---|===)/);
    },
  );

  it("has a name of its own", () => {
    const ids = triggerTemplates("main").flatMap(({ id, wish }) => [id, wish.slug]);
    expect(new Set(ids).size).toBe(triggerTemplates("main").length);
  });
});
