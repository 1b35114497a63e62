/** A new session: what the agent is told, and on which branch, as which agent and with which model it works. */
import { getJson, getJsonOrNull, post, upload } from "../api/api.ts";
import { faultOfFiles } from "../composer/files.ts";
import { h } from "../elements/dom.ts";
import { now } from "../elements/format.ts";
import { formView, given } from "../elements/forms.js";
import { projectLink } from "../elements/parts.ts";
import { isArchived, projectHead, projectPath } from "./project.js";

/** @typedef {import("../wire.d.ts").SessionOptions} SessionOptions */
/** @typedef {{project: import("../wire.d.ts").Project, options: SessionOptions | null}} NewSessionPage */

/** @type {import("../elements/forms.js").FieldView} */
export const promptField = {
  name: "initial_prompt",
  label: "What should the agent do?",
  lines: 6,
};

export const AGENT_HINT =
  "Optional. An agent of the project: a table in `platform.toml`, or a file in `.platform/runtime/agents`.";

/** Which program an agent is. @param {SessionOptions["agent_choices"][number]} agent */
export const runtimeWords = ({ runtime }) => runtime ?? "cannot start";

export const newSession = {
  /** @param {string[]} params @returns {Promise<NewSessionPage>} */
  load: async ([id = ""]) => {
    const [project, options] = await Promise.all([
      getJson(projectPath(id)),
      // Without them the form is still of use.
      getJsonOrNull(`${projectPath(id)}/session-options`, [404, 409, 503]),
    ]);
    return { project, options };
  },

  /** @param {NewSessionPage} data */
  title: ({ project }) => `New session in ${project.name}`,

  /** @param {NewSessionPage} data */
  view: ({ project, options }) => [
    ...projectHead(project, null),
    h("h2", { "data-key": "new-session" }, "New session"),
    isArchived(project)
      ? null
      : formView({
          action: "start-session",
          submit: "Start session",
          sending: "Starting…",
          input: { project: project.id },
          keeps: draftName(project.id),
          fields: [
            { ...promptField, hint: "Optional. Without it, the agent waits for your first message." },
            {
              name: "files",
              label: "Files for the agent",
              hint: "Optional. Images, logs, specifications: at most 10, 10 MiB each.",
              type: "file",
            },
            { name: "name", label: "Name", hint: "Optional. It is shown in lists." },
            {
              name: "base_ref",
              label: "Start from",
              hint: "Optional. A branch, a tag or a commit. The session gets a branch of its own.",
              placeholder: project.default_branch,
              suggestions: options?.branches,
              mono: true,
            },
            {
              group: "Agent and model",
              fields: [
                {
                  name: "agent_name",
                  label: "Agent",
                  hint: AGENT_HINT,
                  placeholder: "default",
                  suggestions: options?.agent_choices.map((agent) => [agent.name, runtimeWords(agent)]),
                  mono: true,
                },
                {
                  name: "agent_model",
                  label: "Model",
                  hint: "Optional. In the form `provider/model`, or as the agent's runtime names it.",
                  placeholder: options?.default_model ?? "provider/model",
                  suggestions: options?.models,
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

/** While a person writes a prompt, a sandbox starts for the session that she is about to start. @param {string} project */
export const warmSandbox = (project) => {
  if (now() - (asked.get(project) ?? 0) < ASK_AGAIN_MS) return;
  asked.set(project, now());
  // The session starts without it, too.
  post(`${projectPath(project)}/environment/warm`).catch(() => undefined);
};

export const followPrompts = () =>
  document.addEventListener("input", ({ target }) => {
    const form = target instanceof Element ? target.closest("form[data-action=start-session]") : null;
    const project = form instanceof HTMLElement ? form.dataset["project"] : undefined;
    if (project !== undefined) warmSandbox(project);
  });

/** Where the tab keeps what is typed for a project's next session. Each page that starts sessions has the same draft. @param {string} project */
export const draftName = (project) => `session ${project}`;

/** Sessions that this tab asked for and that wait: the project of each, by the id in the queue. @type {Map<string, string>} */
const awaited = new Map();

export const awaitedIn = () => [...awaited];

/** @param {string} id */
export const forgetAwaited = (id) => awaited.delete(id);

/**
 * Starts a session.
 *
 * @param {string} project @param {Record<string, string>} typed its fields @param {File[]} files for its first message
 * @returns {Promise<string | null>} the address of its page. Null: it waits for a free session, and stands on the first page.
 */
export const startIn = async (project, typed, files) => {
  const fault = faultOfFiles(files);
  if (fault !== null) throw new Error(fault);
  const path = projectPath(project);
  const attachments = [];
  for (const file of files) {
    // eslint-disable-next-line no-await-in-loop -- one after the other holds one upload at a time
    const { id } = await upload(`${path}/attachments?name=${encodeURIComponent(file.name)}`, file);
    attachments.push(id);
  }
  const wish = { ...given(typed), ...(attachments.length > 0 && { attachments }) };
  const made = await post(`${path}/sessions?queue=true`, wish);
  if (made.status !== "queued") return projectLink(project, `/sessions/${made.id}`);
  awaited.set(made.queue_id, project);
  return null;
};

/** @type {import("../elements/forms.js").Submit} */
const startSession = async (typed, { project = "" }, { files, go }) =>
  go((await startIn(project, typed, files)) ?? "#/");

/** @type {Record<string, import("../elements/forms.js").Submit>} */
export const newSessionForms = { "start-session": startSession };
