/** Names of connectors' tools: at their server, and as agents see them. */
import { createHash } from "node:crypto";

/** The longest name of a tool at its server. */
export const TOOL_NAME_LIMIT = 128;
const TOOL_NAME = /^[A-Za-z0-9_./-]+$/;
/**
 * The longest name that an agent sees. Model providers accept 64 characters, and opencode adds the server's name in
 * front, `platform-executor_`.
 */
const SHOWN_NAME_LIMIT = 46;

/** Whether a server's tool can be offered under this name at all. */
export const isToolName = (text: string): boolean => text.length <= TOOL_NAME_LIMIT && TOOL_NAME.test(text);

const ARGUMENT_NAME = /^[A-Za-z0-9_.-]{1,64}$/;

/** Whether model providers accept an argument of this name. */
export const isArgumentName = (text: string): boolean => ARGUMENT_NAME.test(text);

/** A name that could be taken for a shortened one is shortened itself, so that the two kinds never meet. */
const LOOKS_SHORTENED = /_[0-9a-f]{12}$/;

/**
 * A tool's name as agents see it: `<slug>_<tool>`. A name that is too long or has characters that model providers
 * refuse is shortened and ends with a hash.
 */
export const shownName = (slug: string, tool: string): string => {
  const plain = `${slug}_${tool}`;
  const clean = plain.replaceAll(/[^A-Za-z0-9_-]/g, "_");
  if (clean === plain && plain.length <= SHOWN_NAME_LIMIT && !LOOKS_SHORTENED.test(plain)) return plain;
  const hash = createHash("sha256").update(`${slug}\0${tool}`).digest("hex").slice(0, 12);
  return `${clean.slice(0, SHOWN_NAME_LIMIT - hash.length - 1)}_${hash}`;
};
