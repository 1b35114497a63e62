import * as Exit from "effect/Exit";
import * as Result from "effect/Result";
import { expect, test } from "vitest";
import { credentialMask } from "../../../src/domain/connector/connector-credential.ts";
import { callOutcome } from "../../../src/services/connectors/executor-outcome.ts";

/** The head of a PNG of this width. */
const png = (width: number): string => {
  const head = Buffer.from("89504e470d0a1a0a0000000d49484452000000000000000a", "hex");
  head.writeUInt32BE(width, 16);
  return head.toString("base64");
};
const image = (mimeType: string, data: string) => ({ type: "image", mimeType, data });
const text = (words: string) => ({ type: "text", text: expect.stringContaining(words) as string });

test("a result keeps the pictures that models take, and says why others are left out", () => {
  const content = [
    { type: "text", text: "Seen." },
    image("image/png", png(40)),
    image("image/png", png(9000)),
    image("image/png", "bm8="),
    image("image/svg+xml", "PHN2Zy8+"),
  ];
  const answer = Result.succeed({ content, isError: false, status: null });
  const connector = { slug: "web", url: "https://example.com/" } as Parameters<typeof callOutcome>[1];
  const { result } = callOutcome(Exit.succeed({ answer, mask: credentialMask([]) }), connector, "id");
  expect(result.content).toEqual([
    content[0],
    content[1],
    text("(image/png) is left out: it has 9000 x 10 pixels"),
    text("(image/png) is left out: it is not a whole picture"),
    text("(image/svg+xml) is left out"),
  ]);
});
