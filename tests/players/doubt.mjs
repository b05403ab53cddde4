// What a busy machine can cause as well as a fault: few pictures in some seconds, or a moment without any.

export class Doubt extends Error {}

// Runs an attempt up to three times, until it ends without a doubt. A fault that is no doubt is thrown at once.
export async function withoutDoubt(attempt) {
  for (let left = 2; ; left -= 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Doubt) || !left) throw error;
    }
  }
}
