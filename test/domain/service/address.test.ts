import { expect, test } from "vitest";
import { dialAddress } from "../../../src/domain/service/address.ts";

test.each([
  ["127.0.0.1", "127.0.0.1"],
  ["10.0.0.5", "10.0.0.5"],
  ["0.0.0.0", "127.0.0.1"],
  ["localhost", "localhost"],
  ["::1", "[::1]"],
  ["fd00::5", "[fd00::5]"],
  ["::", "[::1]"],
])("a listener bound to %s is dialled at %s", (bound, dialled) => {
  expect(dialAddress(bound)).toBe(dialled);
  expect(new URL(`http://${dialAddress(bound)}:8080`).hostname).toBe(dialled);
});
