/** A new session: what the agent is told, and on which branch, as which agent and with which model it works. */
import { getJson, getJsonOrNull, post } from "./api.js";
import { h } from "./dom.js";
import { now } from "./format.js";
import { formView, given } from "./forms.js";
import { projectLink } from "./parts.js";
import { projectHead, projectPath } from "./project.js";

/** @typedef {import("./wire-repository.d.ts").ProjectSetup} ProjectSetup */
/** @typedef {{project: import("./wire.d.ts").Project, setup: ProjectSetup | null}} NewSessionPage */

/** @type {import("./forms.js").FieldView} */
export const promptField = {
  name: "initial_prompt",
  label: "What should the agent do?",
  lines: 6,
};

export const newSession = {
  /** @param {string[]} params @returns {Promise<NewSessionPage>} */
  load: async ([id = ""]) => {
    const [project, setup] = await Promise.all([
      getJson(projectPath(id)),
      getJsonOrNull(`${projectPath(id)}/setup`, [403, 404, 409, 503]),
    ]);
    return { project, setup };
  },

  /** @param {NewSessionPage} data */
  title: ({ project }) => `New session in ${project.name}`,

  /** @param {NewSessionPage} data */
  view: ({ project, setup }) => [
    ...projectHead(project, null),
    h("h2", { "data-key": "new-session" }, "New session"),
    formView({
      action: "start-session",
      submit: "Start session",
      sending: "Starting…",
      input: { project: project.id },
      fields: [
        { ...promptField, hint: "Optional. Without it, the agent waits for your first message." },
        { name: "name", label: "Name", hint: "Optional. It is shown in lists." },
        {
          name: "base_ref",
          label: "Start from",
          hint: "Optional. A branch, a tag or a commit. The session gets a branch of its own.",
          placeholder: project.default_branch,
          mono: true,
        },
        {
          group: "Agent and model",
          fields: [
            {
              name: "agent_name",
              label: "Agent",
              hint: "Optional. An agent that the repository defines, in `.platform/runtime/agents`.",
              placeholder: "default",
              mono: true,
            },
            {
              name: "agent_model",
              label: "Model",
              hint: "Optional. In the form `provider/model`.",
              placeholder: setup?.model.model ?? "provider/model",
              suggestions: (setup?.providers ?? []).flatMap(({ configured, model }) =>
                configured ? [model] : [],
              ),
              mono: true,
            },
          ],
        },
      ],
    }),
  ],
};

/** A sandbox that was asked for waits longer than this, ms. */
const ASK_AGAIN_MS = 120_000;
/** When each project's was asked for. @type {Map<string, number>} */
const asked = new Map();

/** While a person writes a prompt, a sandbox starts for the session that she is about to start. */
export const followPrompts = () =>
  document.addEventListener("input", ({ target }) => {
    const form = target instanceof Element ? target.closest("form[data-action=start-session]") : null;
    const project = form instanceof HTMLElement ? form.dataset["project"] : undefined;
    if (project === undefined || now() - (asked.get(project) ?? 0) < ASK_AGAIN_MS) return;
    asked.set(project, now());
    // The session starts without it, too.
    post(`${projectPath(project)}/environment/warm`).catch(() => undefined);
  });

/** @type {import("./forms.js").Submit} */
export const startSession = async (typed, { project = "" }, page) => {
  const { id } = await post(`${projectPath(project)}/sessions`, given(typed));
  page.go(projectLink(project, `/sessions/${id}`));
};

/** @type {Record<string, import("./forms.js").Submit>} */
export const newSessionForms = { "start-session": startSession };
