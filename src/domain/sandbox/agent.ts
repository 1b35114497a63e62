/** Names of agents and models (api.md 3 "Agents"). */
import * as Schema from "effect/Schema";

/** The agent without a file: the runtime's own default. */
export const DEFAULT_AGENT = "default";

/** What a name of an agent must be, after the name of its field. */
export const AGENT_NAME_RULE = "must have 1 to 64 letters, digits, _ or -, and begin with a letter or digit";

/** The name is one path segment by construction, so it cannot lead out of `agents/` (threats.md M14). */
export const AgentName = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, {
    message: `An agent name ${AGENT_NAME_RULE}.`,
  }),
);
export const isAgentName = Schema.is(AgentName);

/** `provider/model`. The model may contain slashes of its own, as routers' names do. */
export const AgentModel = Schema.String.check(
  Schema.isMaxLength(200, { message: "A model name must have at most 200 characters." }),
  Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9._-]*(?:\/[A-Za-z0-9@][A-Za-z0-9._:@+-]*)+$/, {
    message: "A model name must have the form provider/model, for example anthropic/claude-sonnet-4-5.",
  }),
);
export const isAgentModel = Schema.is(AgentModel);

/** A model's name as some runtime has it, such as `opus` or `provider/model`. Only that runtime knows whether it exists. */
const ModelName = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9@][^\s\p{Cc}]{0,199}$/u));
export const isModelName = Schema.is(ModelName);

/** What an effort must be, after the name of its field. */
export const EFFORT_RULE = "must have 1 to 32 lower-case letters, digits, _ or -, such as low or high";
/** How hard a model thinks, in the words of its runtime. */
const Effort = Schema.String.check(Schema.isPattern(/^[a-z][a-z0-9_-]{0,31}$/));
export const isEffort = Schema.is(Effort);
/** In place of an effort: the model's own. */
export const OWN_EFFORT = "default";

/** An agent's definition is a page of text. A larger file does not count, bytes. */
export const AGENT_FILE_LIMIT = 1024 * 1024;

/** The repository file that defines an agent (spec.md 2.4). */
export const agentFile = (configDir: string, name: string): string => `${configDir}/agents/${name}.md`;
