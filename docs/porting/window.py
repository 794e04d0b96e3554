"""The coin game in a window: ``python window.py before host``, ``python window.py after join 192.0.2.7``."""

import importlib
import sys

import pygame
from rules import HEIGHT, RATE, WIDTH

PORT = 40000


def main(program, role, host="127.0.0.1"):
    game = importlib.import_module(program)
    server = game.Server(("0.0.0.0", PORT)) if role == "host" else None
    client = game.Client((host, PORT), f"player {pygame.time.get_ticks() % 1000}")
    pygame.init()
    screen, clock = pygame.display.set_mode((WIDTH, HEIGHT)), pygame.time.Clock()
    font = pygame.font.SysFont("dejavusans,arial", 14)
    while not any(event.type == pygame.QUIT for event in pygame.event.get()):
        held = pygame.key.get_pressed()
        client.tick((held[pygame.K_RIGHT] - held[pygame.K_LEFT], held[pygame.K_DOWN] - held[pygame.K_UP]))
        if server is not None:
            server.tick()
        players, coin = client.players()
        screen.fill((18, 22, 30))
        pygame.draw.circle(screen, (255, 205, 90), coin, 8)
        for name, (spot, score) in players.items():
            pygame.draw.circle(screen, (90, 170, 255) if name == client.name else (255, 150, 90), spot, 14)
            screen.blit(font.render(f"{name}: {score}", True, (235, 240, 245)), (spot[0] - 30, spot[1] - 34))
        if client.lost:
            screen.blit(font.render("connection lost", True, (240, 95, 95)), (20, 20))
        pygame.display.flip()
        clock.tick(RATE)
    client.close()
    if server is not None:
        server.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
