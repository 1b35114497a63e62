/** `npm start`. */
import { keepCompiled } from "./ground/compile-cache.ts";

keepCompiled();
const { run, service } = await import("./serve.ts");
run(service);
