/** A project's secrets: which the manifest declares, which have a value, and who can read them. */
import { getJson, put } from "../api/api.js";
import { SECRET_LINES } from "../frame/dialog.js";
import { h } from "../elements/dom.js";
import { formView } from "../elements/forms.js";
import { moment } from "../elements/format.js";
import { button, callout, code, detail, empty, listRow, tag, time } from "../elements/parts.js";
import { projectHead, projectPath } from "./project.js";

/** @typedef {import("../wire.d.ts").SecretListing} SecretListing */
/** @typedef {{project: import("../wire.d.ts").Project, listing: SecretListing}} SecretsPage */
/** @typedef {{name: string, drawn: (main: HTMLElement) => void, end: () => void}} Typing */

export const secrets = {
  /** @param {string[]} params @returns {Promise<SecretsPage>} */
  load: async ([id = ""]) => {
    const [project, listing] = await Promise.all([
      getJson(projectPath(id)),
      getJson(`${projectPath(id)}/secrets`),
    ]);
    return { project, listing };
  },

  /** @param {SecretsPage} data */
  title: ({ project }) => `Secrets of ${project.name}`,

  /** @param {string[]} _params @param {() => void} changed @returns {Typing} */
  follow: (_params, changed) => followName(changed),

  /** @param {SecretsPage} data @param {unknown} _me @param {Typing | null} live */
  view: ({ project, listing }, _me, live) => {
    const { secrets: set, declared } = listing;
    const missing = new Set(declared.missing);
    const unset = [...declared.required, ...declared.optional].filter(
      (name) => !set.some((secret) => secret.name === name),
    );
    return [
      ...projectHead(project, "/secrets"),
      h(
        "p",
        { class: "quiet", "data-key": "about" },
        "The agent of every session gets these secrets as environment variables, except those that are the service's own. Everyone who can talk to an agent of this project can make it use them. No page and no answer of the API shows a value.",
      ),
      missing.size > 0 &&
        callout("warn", "Sessions start without these required secrets: ", listed([...missing]), "."),
      set.length + unset.length === 0
        ? empty("No secrets yet.", "Add the key of a model provider, or what the agent's commands need.")
        : h("ul", { class: "rows", "data-key": "secrets" }, [
            ...unset.map((name) => missingRow(project.id, name, missing.has(name))),
            ...set.map((secret) => row(project.id, secret, declared)),
          ]),
      h(
        "section",
        { "data-key": "add" },
        h("h2", {}, "Add a secret"),
        formView({
          action: "add-secret",
          submit: "Add the secret",
          sending: "Saving…",
          input: { project: project.id, taken: set.map(({ name }) => name).join(" ") },
          fields: [
            {
              name: "name",
              label: "Name",
              hint: "Letters `A-Z`, digits and `_`. Agents see it as a variable of this name.",
              placeholder: "NPM_TOKEN",
              required: true,
              mono: true,
            },
            replaces(listing, live),
            {
              name: "value",
              label: "Value",
              hint: "It may have several lines, such as a private key. Agents get it exactly as it is here.",
              masked: true,
              lines: SECRET_LINES,
              required: true,
            },
            {
              name: "service",
              label: "Keep it to the service",
              hint: "For secrets that verify webhooks. No agent gets it.",
              type: "checkbox",
            },
          ],
        }),
      ),
    ];
  },
};

/** The name that the form has so far. @param {() => void} changed @returns {Typing} */
const followName = (changed) => {
  /** @type {WeakSet<HTMLFormElement>} */
  const heard = new WeakSet();
  const state = {
    name: "",
    /** @param {HTMLElement} main */
    drawn: (main) => {
      const form = main.querySelector("form.form");
      if (!(form instanceof HTMLFormElement) || heard.has(form)) return;
      heard.add(form);
      const see = () => {
        state.name = String(new FormData(form).get("name") ?? "").trim();
        changed();
      };
      form.addEventListener("input", see);
      // The fields are empty after the event, not yet during it.
      form.addEventListener("reset", () => queueMicrotask(see));
    },
    end: () => {},
  };
  return state;
};

/** @param {SecretListing} listing @param {Typing | null} live */
const replaces = ({ secrets: set }, live) =>
  h(
    "p",
    { role: "status", "data-key": "replaces" },
    set.some(({ name }) => name === live?.name) && [
      "This replaces the value of ",
      code(live?.name ?? ""),
      ". The old value cannot be read any more.",
    ],
  );

/** @param {string[]} names */
const listed = (names) => names.map((name, index) => h("span", {}, index > 0 && ", ", code(name)));

/** @param {string} projectId @param {string} name @param {boolean} isMissing */
const missingRow = (projectId, name, isMissing) =>
  listRow(name, [code(name), detail("Declared in platform.toml")], {
    states: [isMissing ? tag("missing", "bad") : tag("optional, not set")],
    actions: [setButton(projectId, name, "Set")],
  });

/** @param {string} projectId @param {SecretListing["secrets"][number]} secret @param {SecretListing["declared"]} declared */
const row = (
  projectId,
  { name, masked, unseen, service, updated_at, previous_valid_until: until, provider },
  declared,
) =>
  listRow(
    name,
    [
      code(name),
      detail("Set ", time(updated_at)),
      until !== null && detail(`The previous value still verifies webhooks until ${moment(until)}.`),
      unseen.length > 0 && h("span", { class: "reason" }, `The value ${unseen.join(" and ")}.`),
      !masked &&
        h(
          "span",
          { class: "reason" },
          "Not masked in logs: the value is shorter than 6 bytes. Set a longer one.",
        ),
    ],
    {
      states: [
        service && tag("the service's own"),
        declared.required.includes(name) && tag("required"),
        declared.optional.includes(name) && tag("optional"),
      ],
      actions: [
        provider !== null && tryButton(projectId, [name], `Try the key ${name}`),
        setButton(projectId, name, "Replace"),
        button("delete-secret", "Delete", {
          class: "plain",
          "data-project": projectId,
          "data-secret": name,
          "aria-label": `Delete ${name}`,
        }),
      ],
    },
  );

/**
 * Asks the model's provider whether it accepts the key.
 *
 * @param {string} projectId
 * @param {readonly string[]} names of the secret that may have the key
 * @param {string} label
 */
export const tryButton = (projectId, names, label) =>
  button("try-key", "Try the key", {
    class: "plain",
    "data-project": projectId,
    "data-secrets": names.join(" "),
    "aria-label": label,
  });

/** @param {string} projectId @param {string} name @param {string} label */
const setButton = (projectId, name, label) =>
  button("set-secret", label, {
    class: "plain",
    "data-project": projectId,
    "data-secret": name,
    "data-rotates": label === "Replace" ? "yes" : "",
    "aria-label": `${label} ${name}`,
  });

/** @type {Record<string, import("../elements/forms.js").Submit>} */
export const secretForms = {
  "add-secret": async ({ name = "", value = "", service = "" }, { project = "", taken = "" }, page) => {
    await put(`${projectPath(project)}/secrets/${encodeURIComponent(name)}`, {
      value,
      ...(service !== "" && { service: true }),
    });
    page.notice(taken.split(" ").includes(name) ? `The value of ${name} is replaced.` : `${name} is set.`);
    page.refresh();
  },
};
