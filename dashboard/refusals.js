/** Webhooks that a project's receiver refused, with the reasons that the sender does not get. */
import { getJson, getList } from "./api.js";
import { h } from "./dom.js";
import { button, callout, code, empty, projectLink, time } from "./parts.js";
import { projectHead, projectPath } from "./project.js";

/** @typedef {import("./wire.d.ts").WebhookRefusal} WebhookRefusal */
/** @typedef {{project: import("./wire.d.ts").Project, refusals: WebhookRefusal[], more: boolean}} Refusals */

/** Texts for reason codes. Other codes are shown as they are. */
const REASONS = new Map([
  ["invalid_webhook_address", "The address is not that of a trigger."],
  ["unknown_trigger", "The manifest has no trigger with this slug."],
  ["trigger_in_error", "The manifest's entry for this trigger, or its filter, has an error."],
  ["trigger_disabled", "The trigger is disabled."],
  ["not_a_webhook_trigger", "The trigger is not a webhook trigger."],
  ["triggers_paused", "The project's triggers are paused."],
  ["project_archived", "The project is archived."],
  ["secret_not_configured", "The trigger's secret has no value."],
  ["signature_missing", "The request has no signature."],
  ["signature_malformed", "The signature is not sha256= and 64 hexadecimal digits."],
  ["signature_mismatched", "The signature does not match: the sender has another secret."],
  ["body_too_large", "The body is larger than 25 MiB."],
  ["body_timeout", "The body did not arrive in time."],
  ["malformed_request", "The body ended before it was complete."],
  ["queue_full", "The account's queue was full."],
  ["busy", "The service was busy."],
  ["database_unavailable", "The database could not be reached."],
]);

export const refusals = {
  /** @param {string[]} params @param {import("./app.js").Extent} extent @returns {Promise<Refusals>} */
  load: async ([id = ""], { pages }) => {
    const [project, { items, more }] = await Promise.all([
      getJson(projectPath(id)),
      getList(`${projectPath(id)}/webhook-refusals`, "webhook_refusals", pages),
    ]);
    return { project, refusals: items, more };
  },

  /** @param {Refusals} data */
  title: ({ project }) => `Refused webhooks of ${project.name}`,

  /** @param {Refusals} data */
  view: ({ project, refusals: list, more }) => [
    ...projectHead(project, "/webhook-refusals"),
    project.triggers_paused &&
      callout("warn", "All triggers of this project are paused. Webhooks are answered 404."),
    list.length === 0
      ? empty(
          "No webhook was turned away.",
          "The newest 500 of the last 7 days are shown here. ",
          h("a", { href: projectLink(project.id, "/triggers") }, "See the triggers"),
        )
      : h("ul", { class: "rows", "data-key": "refusals" }, list.map(row)),
    more && h("p", { class: "more", "data-key": "more" }, button("more", "Show older ones")),
  ],
};

/** @param {WebhookRefusal} refusal */
const row = (refusal) =>
  h(
    "li",
    { class: "row", "data-key": refusal.id },
    h(
      "span",
      { class: "row-main" },
      h("span", { class: "named" }, code(refusal.slug)),
      h("span", { class: "reason" }, REASONS.get(refusal.reason) ?? refusal.reason),
      h(
        "span",
        { class: "quiet parts" },
        detailsOf(refusal).map((part) => h("span", {}, part)),
      ),
    ),
    code(String(refusal.status)),
    h("span", { class: "row-side" }, time(refusal.at)),
  );

/** @param {WebhookRefusal} refusal */
const detailsOf = ({ event, delivery_id: delivery, address, forwarded_for: forwarded, ...sizes }) => {
  const bytes = sizes.body_bytes ?? sizes.declared_bytes;
  return [
    event && h("span", {}, "event ", code(event)),
    delivery && h("span", {}, "delivery ", code(delivery)),
    bytes !== null && `${bytes} bytes`,
    h("span", {}, "from ", code(forwarded ?? address)),
  ].filter(Boolean);
};
