/** The gateway's tools that every agent sees by name, and how they lead to all others. */
import { argumentsSchema, type OwnTool } from "./own-tools.ts";
import type { FindableTool } from "../../services/connectors/executor.ts";
import { RESERVED_SLUG } from "../../domain/connector/connector.ts";

export const INSTRUCTIONS =
  "Tools of this platform (sessions, change requests, triggers, logs) and of the project's connectors. find_tools lists tools that fit some words, with their arguments. call_tool calls one. " +
  "A refused call says what a person can do; do not try it again unchanged. A call that waits for a person's approval says so " +
  "after two minutes; its result comes as a message into the conversation.";

const QUERY = {
  type: "string",
  description: "Words of the tool's name or description. Empty: the first tools.",
};
export const META_TOOLS = [
  {
    name: "call_result",
    description: "Gives the state or the result of a call that waits, or waited, for a person's approval.",
    inputSchema: {
      type: "object" as const,
      properties: { id: { type: "string", description: "The call's id." } },
      required: ["id"],
    },
  },
  {
    name: "call_tool",
    description: "Calls a tool that find_tools found.",
    inputSchema: {
      type: "object" as const,
      properties: {
        name: { type: "string", description: "The tool's name, as find_tools shows it." },
        arguments: { type: "object", description: "The tool's arguments, by its input_schema." },
      },
      required: ["name"],
    },
  },
  {
    name: "find_tools",
    description:
      "Finds tools: names, descriptions and arguments. There are tools of this platform (sessions, starting a session, change requests, triggers, fires, logs) and of the project's connectors.",
    inputSchema: { type: "object" as const, properties: { query: QUERY }, required: ["query"] },
  },
];

/** One of the platform's own tools. They are found, not listed: an agent that does not need them does not pay for them in its prompt. */
export const findable = (tool: OwnTool): FindableTool => ({
  name: `${RESERVED_SLUG}_${tool.name}`,
  description: tool.description,
  inputSchema: argumentsSchema(tool),
  note: null,
});
