/** A message as content blocks of the Agent Client Protocol. */
import { pathToFileURL } from "node:url";
import type { ContentBlock } from "@agentclientprotocol/sdk";
import * as Effect from "effect/Effect";
import type { ContentPart } from "../../../src/domain/conversation/conversation.ts";
import type { AttachedFile } from "../../agent/attachments.ts";
import type { Capabilities } from "./wire.ts";
import { fileParts, type PromptPart } from "../opencode/files.ts";

const BASE64 = /^data:[^,]*;base64,/;

/**
 * The blocks of a message. The agent gets the path of every file, and the contents that it says it takes.
 *
 * A link to a file is never sent. opencode reads the file, and fails at each later message if its provider does not take
 * files of this type.
 */
export const promptBlocks = (
  texts: readonly string[],
  files: readonly AttachedFile[],
  { promptCapabilities: takes = {} }: Capabilities,
): Effect.Effect<readonly ContentBlock[]> =>
  Effect.map(fileParts(files), (parts) => [
    ...texts.filter((text) => text !== "").map((text) => ({ type: "text" as const, text })),
    ...parts.flatMap((part) => toBlock(part, takes)),
  ]);

const toBlock = (
  part: PromptPart,
  takes: NonNullable<Capabilities["promptCapabilities"]>,
): readonly ContentBlock[] => {
  if (part.type === "text") return [{ type: "text", text: part.text }];
  const { mime: mimeType, filename } = part;
  const data = part.url.replace(BASE64, "");
  if (mimeType.startsWith("image/")) return takes.image ? [{ type: "image", mimeType, data }] : [];
  if (!takes.embeddedContext) return [];
  const uri = pathToFileURL(`/${filename}`).href;
  return [{ type: "resource", resource: { uri, mimeType, blob: data } }];
};

/** What people see of the message. */
export const shownContent = (text: string, files: readonly AttachedFile[]): readonly ContentPart[] => [
  ...(text === "" ? [] : [{ type: "text" as const, text }]),
  ...files.map(({ name, media_type }) => ({
    type: "file" as const,
    name,
    media_type,
    attachment_id: null,
  })),
];
