/** A conversation with tools of each kind: what they read, found, ran and changed. */
import type { FakeConversation } from "../fakes/fake-conversation.ts";
import { conversationOf, sampleItem, sampleTool, text } from "./sample-conversation.ts";

type Json = Readonly<Record<string, unknown>>;

const ESC = "\u001b";

/** More lines than are shown at once. */
const LONG = Array.from({ length: 200 }, (_, n) => `line ${n + 1} of the log`).join("\n");

const TESTS = `${ESC}[1m${ESC}[46m RUN ${ESC}[0m v5.1.2 ${ESC}[90m/workspace${ESC}[0m

${ESC}[32m✓${ESC}[39m greet.test.sh ${ESC}[2m(3 tests)${ESC}[22m
${ESC}[31m×${ESC}[39m greets by the hour
downloading  10 %\rdownloading 100 %
${ESC}[33mwarning${ESC}[0m: ${ESC}[38;5;208mold${ESC}[0m ${ESC}[35mformat${ESC}[0m of ${ESC}[4;34mgreet.sh${ESC}[0m
${ESC}[41;37m FAIL ${ESC}[0m 1 test`;

const PATCH = `@@ -1,4 +1,5 @@
 #!/bin/sh
-echo "Hello, $1"
+hour=$(date +%H)
+[ "$hour" -lt 12 ] && echo "Good morning, $1" || echo "Hello, $1"
 
 exit 0
`;

const tool = (id: string, fields: Json, rest: Json = {}): Json =>
  sampleItem(id, { ...sampleTool({ title: null, output: "", ...fields }), ...rest });

const read = (id: string, path: string): Json =>
  tool(id, {
    name: "read",
    kind: "read",
    title: path,
    input: { filePath: `/workspace/${path}` },
    output: `<path>/workspace/${path}</path>\n<type>file</type>\n<content>\n1: #!/bin/sh\n2: echo "Hello, $1"\n\n(End of file - total 2 lines)\n</content>`,
  });

const SPENT = { input_tokens: 18_300, output_tokens: 940, cached_tokens: 12_000, cost_usd: 0.061 };

export const toolsConversation = (): FakeConversation =>
  conversationOf([
    sampleItem("p", {
      role: "user",
      author: { kind: "user", name: "Mona", trigger_slug: null, fire_id: null },
      status: "accepted",
      ...text("Greet by the hour, and run the tests."),
    }),
    read("r1", "bin/greet.sh"),
    read("r2", "test/greet.test.sh"),
    tool("s1", {
      name: "glob",
      kind: "search",
      title: "**/*.sh",
      input: { pattern: "**/*.sh" },
      output: "/workspace/bin/greet.sh\n/workspace/test/greet.test.sh",
    }),
    sampleItem("say", text("I change `bin/greet.sh`, then I run the tests.")),
    tool("e", {
      name: "edit",
      kind: "edit",
      title: "bin/greet.sh",
      input: { filePath: "/workspace/bin/greet.sh" },
      changes: [{ path: "bin/greet.sh", operation: "update", patch: PATCH }],
    }),
    tool(
      "t",
      {
        title: "npm test",
        input: { command: "npm test -- --reporter verbose \\\n  && echo done", description: "Run the tests" },
        output: TESTS,
      },
      { status: "failed", error: { code: "exit_1", message: "The command ended with code 1." } },
    ),
    tool("s2", {
      name: "grep",
      kind: "search",
      title: "Hello",
      input: { pattern: "Hello" },
      output:
        'Found 2 matches\n/workspace/bin/greet.sh:\n  Line 2: echo "Hello, $1"\n\n/workspace/test/greet.test.sh:\n  Line 7: expect Hello',
    }),
    tool("l", { title: "cat build.log", input: { command: "cat build.log" }, output: LONG }),
    tool("o", {
      name: "odd_tool",
      kind: "other",
      input: { project: "greeter", labels: ["a", "b"] },
      output: '{"ok":true}',
    }),
    tool("w", {
      name: "webfetch",
      kind: "fetch",
      title: "https://example.com/guide",
      input: { url: "https://example.com/guide" },
      output: "# Guide\nGreet people.",
    }),
    sampleItem("end", {
      ...text("One test fails.\n\n```sh\nnpm test\n```\n\nمرحبا بالعالم. The greeting depends on the hour."),
      model: "openai/gpt-5",
      usage: SPENT,
      completed_at: "2026-11-20T06:54:40.000Z",
    }),
  ]);
