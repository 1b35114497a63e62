/** Tokens that need a sign-in at a provider, in both stores. */
import * as Layer from "effect/Layer";
import { describe } from "vitest";
import { memoryStore } from "../twins/store/layer.ts";
import { TokenSignIn } from "../../src/store/ports/people/identity.ts";
import { checkWith } from "../conformance/store/fixture.ts";
import { checkTokenSignIn, SIGN_IN_MS } from "../conformance/store/people/identities.ts";
import { storeOfFile } from "../support/postgres/postgres.ts";

const needed = Layer.provide(Layer.succeed(TokenSignIn, SIGN_IN_MS));

describe("Postgres", () => checkTokenSignIn(checkWith(storeOfFile().pipe(needed))));
describe("memory", () => checkTokenSignIn(checkWith(memoryStore.pipe(needed))));
