/**
 * Attached files as parts of a message for opencode. The agent gets the path of every file. Images, PDFs and
 * short texts are in the message, too: a model can read them at once.
 *
 *  P1 The parts follow from the files alone, so a message that is handed over twice has the same parts.
 *  P2 A picture that providers refuse is not in the message: it would stay in the conversation, and each later message would fail. The model
 *     hears that it cannot see it.
 */
import { readFile } from "node:fs/promises";
import * as Effect from "effect/Effect";
import { isImage, textIn } from "../../../src/domain/conversation/attachment.ts";
import { unfitPicture } from "../../../src/domain/conversation/image-size.ts";
import type { AttachedFile } from "../../agent/attachments.ts";

const MIB = 1024 * 1024;
/** The largest file that is in the message, in bytes. Some providers refuse images of more than 5 MiB in base64. */
const INLINE_MAX = 3.5 * MIB;
/** All such files of one message. opencode reads its newest messages often, with all that is in them. */
const INLINE_ALL_MAX = 7 * MIB;
/** The longest text that is in the message, in bytes. */
const TEXT_MAX = 32 * 1024;

export type PromptPart =
  | {
      readonly type: "text";
      readonly text: string;
      readonly synthetic?: true;
      readonly metadata?: Readonly<Record<string, string>>;
    }
  | { readonly type: "file"; readonly mime: string; readonly filename: string; readonly url: string };

/** Whether providers take files of this type beside a text. */
const isReadable = ({ media_type: type }: AttachedFile): boolean =>
  isImage(type) || type === "application/pdf";

const fileLine = ({ path, media_type: type, bytes }: AttachedFile): string =>
  `- ${path} (${type}, ${bytes} bytes)`;

/** Why a file is not in the message, by its size. Null if it has room. @param inline bytes of the files that are in it */
const roomless = ({ path, bytes }: AttachedFile, inline: number): string | null => {
  if (bytes > INLINE_MAX)
    return `You cannot see ${path}: it has ${Math.ceil((bytes * 10) / MIB) / 10} MiB, and a message shows at most ${INLINE_MAX / MIB} MiB of a file. Make a smaller copy to look at it.`;
  return inline + bytes > INLINE_ALL_MAX
    ? `You cannot see ${path}: a message shows at most ${INLINE_ALL_MAX / MIB} MiB of files, and those before it filled that. Make a smaller copy to look at it.`
    : null;
};

/** P2. Why a picture is not in the message, by its content. Null if it may be, or the file is none. */
const unfit = ({ path, media_type: type }: AttachedFile, content: Buffer): string | null => {
  if (!isImage(type)) return null;
  const reason = unfitPicture(type, content);
  return reason === null ? null : `You cannot see ${path}: ${reason}`;
};

/** The parts beside the message's own text. */
export const fileParts = (files: readonly AttachedFile[]): Effect.Effect<readonly PromptPart[]> =>
  Effect.promise(async () => {
    if (files.length === 0) return [];
    const texts: string[] = [];
    const parts: PromptPart[] = [];
    let inline = 0;
    for (const file of files) {
      const { name, path, media_type: mime, bytes } = file;
      const tooLarge = isReadable(file) ? roomless(file, inline) : null;
      if (tooLarge !== null) texts.push(`\n${tooLarge}`);
      else if (isReadable(file)) {
        // oxlint-disable-next-line no-await-in-loop -- one after the other holds one file at a time
        const content = await readFile(path);
        const reason = unfit(file, content);
        if (reason !== null) {
          texts.push(`\n${reason}`);
          continue;
        }
        inline += bytes;
        parts.push({
          type: "file",
          mime,
          filename: name,
          url: `data:${mime};base64,${content.toString("base64")}`,
        });
      } else if (bytes <= TEXT_MAX) {
        // oxlint-disable-next-line no-await-in-loop -- see above
        const text = textIn(await readFile(path));
        if (text !== null) texts.push(`\nThe content of ${path}:\n\n${text}`);
      }
    }
    const list = ["Files that the person attached to this message:", ...files.map(fileLine)];
    return [{ type: "text", text: [...list, ...texts].join("\n"), synthetic: true }, ...parts];
  });
