/** Files on their way into a message. */
import { basename } from "node:path";
import { ATTACHMENT_MAX, ATTACHMENTS_MAX, type AttachmentHead } from "../../domain/attachment.ts";
import type { Client } from "../client.ts";
import { usage } from "../failure.ts";
import type { Input } from "../input.ts";

/**
 * Attaches files to a session, one after the other.
 *
 * @returns their ids, for a message. All files are read before the first is sent.
 */
export const attached = async (
  { client, input }: { readonly client: Client; readonly input: Input },
  { pid, sid }: { readonly pid: string; readonly sid: string },
  paths: readonly string[],
): Promise<readonly string[]> => {
  if (paths.length > ATTACHMENTS_MAX) throw usage(`A message has at most ${ATTACHMENTS_MAX} files.`);
  const files = paths.map((path) => ({ name: basename(path), content: input.bytes(path, ATTACHMENT_MAX) }));
  const ids: string[] = [];
  for (const { name, content } of files) {
    const path = `/projects/${pid}/sessions/${sid}/attachments?name=${encodeURIComponent(name)}`;
    // oxlint-disable-next-line no-await-in-loop -- one after the other holds one upload at a time
    const { id } = (await client.upload(path, content)) as AttachmentHead;
    ids.push(id);
  }
  return ids;
};
