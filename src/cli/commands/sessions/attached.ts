/** Files on their way into a message. */
import { basename } from "node:path";
import type { Client } from "../../client.ts";
import type { Input } from "../../input.ts";

/** The service refuses larger files. */
const FILE_MAX = 10 * 1024 * 1024;

/**
 * Attaches files to a session, or to the one that is started with them, one after the other.
 *
 * @param option what named the files, for errors
 * @returns their ids, for a message. All files are read before the first is sent.
 */
export const sendAttachments = async (
  { client, input, option }: { readonly client: Client; readonly input: Input; readonly option: string },
  { pid, sid }: { readonly pid: string; readonly sid?: string },
  paths: readonly string[],
): Promise<readonly string[]> => {
  const files = paths.map((path) => ({ name: basename(path), content: input.bytes(path, FILE_MAX, option) }));
  const ids: string[] = [];
  for (const { name, content } of files) {
    const place = sid === undefined ? `/projects/${pid}` : `/projects/${pid}/sessions/${sid}`;
    const path = `${place}/attachments?name=${encodeURIComponent(name)}`;
    // oxlint-disable-next-line no-await-in-loop -- one after the other holds one upload at a time
    const { id } = (await client.upload(path, content)) as { readonly id: string };
    ids.push(id);
  }
  return ids;
};
