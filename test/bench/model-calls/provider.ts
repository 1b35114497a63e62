/** A provider of models in a process of its own: a short answer, or one that streams as many tokens as the request names. */
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { serveParent } from "../programs.ts";

const event = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const TOKEN = event({ type: "content_block_delta", delta: { text: "word " } });
const BEGIN = event({ type: "message_start", message: { usage: { input_tokens: 100, output_tokens: 1 } } });
const end = (tokens: number): string => event({ type: "message_delta", usage: { output_tokens: tokens } });

const server = createServer((request, response) => {
  void json(request).then((body) => {
    const tokens = Number(Object(body)["tokens"] ?? 0);
    if (tokens === 0) {
      const usage = { input_tokens: 100, output_tokens: 10 };
      return void response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ content: [{ type: "text", text: "Done." }], usage }));
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(BEGIN);
    let left = tokens;
    // One piece for each token, as a provider writes them, as fast as they are taken.
    const write = (): void => {
      while (left > 0) {
        left -= 1;
        if (!response.write(TOKEN)) return void response.once("drain", write);
      }
      response.end(end(tokens));
    };
    write();
  });
});
serveParent(server);
