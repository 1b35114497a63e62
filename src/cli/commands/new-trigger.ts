/** `platform triggers new` and `platform triggers templates`: triggers that do not exist yet. Each becomes a change request. */
import { webhookSecretName, triggerTemplates, type TriggerTemplate } from "../../domain/trigger/templates.ts";
import { command } from "../command.ts";
import { endpoint } from "../endpoint/endpoint.ts";
import { usageFailure } from "../failure.ts";
import { table, safeLine } from "../terminal.ts";
import { proposalText } from "./triggers.ts";

const ID = "ID";

/** For lists: the name and purpose of a template are the same for all projects. */
const ANY_BRANCH = "the default branch";

const templates = command({
  name: "triggers templates",
  about: "List the templates for new triggers",
  run: async () => {
    const all = triggerTemplates(ANY_BRANCH);
    const rows = all.map(({ id, wish, about }) => [id, wish.type, about]);
    return {
      json: JSON.stringify({
        templates: all.map(({ id, title, about, wish }) => ({ id, title, about, type: wish.type })),
      }),
      text: table([ID, "TYPE", "PURPOSE"], rows, "No templates."),
    };
  },
});

/** @throws Failure for an unknown id, with the known ones */
const templateFor = (id: string, defaultBranch: string): TriggerTemplate => {
  const all = triggerTemplates(defaultBranch);
  const match = all.find((template) => template.id === id);
  if (match === undefined)
    throw usageFailure(`--template must be one of ${all.map((template) => template.id).join(", ")}.`);
  return match;
};

const create = endpoint("POST /v1/projects/:pid/triggers/proposals", {
  name: "triggers new",
  about: "Add a trigger to platform.toml, by a change request",
  example:
    'triggers new --slug nightly --cron "0 30 2 * * *" --timezone Europe/Berlin --prompt "Update the dependencies."',
  options: {
    template: {
      value: ID,
      about: "Begin with a template; see `platform triggers templates`",
      sets: null,
    },
    slug: { value: "SLUG", about: "The trigger's name in addresses" },
    name: { value: "TEXT", about: "Its name for people" },
    title: { value: "TEXT", about: "The title of its sessions, with variables as in the prompt" },
    prompt: { value: "TEXT", about: "The prompt of its sessions" },
    "prompt-file": {
      value: "FILE",
      about: "Read it from a file (- for standard input)",
      sets: "prompt",
      from: "file",
    },
    agent: { value: "NAME", about: "One of the project's agents (default)" },
    cron: { value: "LINE", about: "A schedule: second, minute, hour, day, month, weekday" },
    timezone: { value: "ZONE", about: "The schedule's zone, such as Europe/Berlin (UTC)" },
    "secret-env": { value: "NAME", about: "A webhook: the secret with which senders sign" },
    event: {
      value: "EVENT",
      many: true,
      about: "A webhook: only these events. May be given several times",
      sets: "events",
    },
    branch: {
      value: "BRANCH",
      many: true,
      about: "A webhook: only these branches. May be given several times",
      sets: "branches",
    },
    merge: { about: "Merge the change request now, if you may merge" },
  },
  notes:
    "With --cron the trigger is a schedule, with --secret-env a webhook. Each option replaces that field of the template.",
  sends: async ({ options, api, project }) => {
    const { template, cron, "secret-env": secret, slug } = options;
    if (cron !== undefined && secret !== undefined)
      throw usageFailure("Give --cron or --secret-env, not both.");
    if (template === undefined && cron === undefined && secret === undefined)
      throw usageFailure("Give --cron, --secret-env or --template.");
    const params = { pid: await project() };
    const wish =
      template === undefined
        ? null
        : templateFor(template, (await api().call("GET /v1/projects/:pid", { params })).value.default_branch)
            .wish;
    const type = cron !== undefined ? "cron" : secret !== undefined ? "webhook" : (wish?.type ?? "cron");
    if (wish !== null && wish.type !== type)
      throw usageFailure(
        `The template ${safeLine(template ?? "")} is a ${wish.type} trigger, so --${type === "cron" ? "cron" : "secret-env"} does not fit.`,
      );
    const hasSecret = slug !== undefined && wish?.secret_env !== undefined;
    return { payload: { ...wish, type, ...(hasSecret && { secret_env: webhookSecretName(slug) }) } };
  },
  shows: proposalText,
});

export const newTriggerCommands = [templates, create];
