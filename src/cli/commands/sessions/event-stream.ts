/** Server-sent events, as a command reads them. */

export interface SentEvent {
  /** Null for an event that does not move the reader's position. */
  readonly id: string | null;
  readonly event: string;
  /** JSON. */
  readonly data: string;
}

/** The events of a stream. Comments are left out. */
export async function* readEvents(stream: AsyncIterable<Buffer>): AsyncGenerator<SentEvent> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    rest += decoder.decode(chunk, { stream: true });
    const frames = rest.split("\n\n");
    rest = frames.pop() ?? "";
    for (const frame of frames) {
      const [data, event] = [/^data: (.*)$/m.exec(frame)?.[1], /^event: (.*)$/m.exec(frame)?.[1]];
      const id = /^id: (.*)$/m.exec(frame)?.[1] ?? null;
      if (data !== undefined && event !== undefined) yield { id, event, data };
    }
  }
}
