/** `npm start`. */
import { keepCompiled } from "./compile-cache.ts";

keepCompiled();
const { run, service } = await import("./serve.ts");
run(service);
